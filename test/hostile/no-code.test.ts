// Nothing that a request can reach starts a program or runs text as code: every file that the server is made of, followed
// from src/app.ts over all imports and workers, and the packages that those files import.

import { expect, test } from 'bun:test'
import { join, posix } from 'node:path'
import { readSources } from '../layers/read-sources.ts'
import { readSource } from '../layers/source-text.ts'

const root = join(import.meta.dir, '../..')

/** Matched against code without comments, texts and regular expressions. */
const forbiddenCode: Readonly<Record<string, RegExp>> = {
  'starts a program': /\bBun\s*\.\s*(?:spawn|spawnSync|\$)|\bprocess\s*\.\s*(?:binding|dlopen|execve)\b/,
  'runs text as code': /(?<![.\w$])eval\s*\(|(?<![.\w$])Function\s*\(|\.\s*constructor\s*\(|\bWebAssembly\b/,
  'loads code by a name that is made at run time':
    /\brequire\s*\(|\bimport\s*\(\s*[^\s)'"`]|\bnew\s+Worker\s*\(\s*(?!new\s+URL\s*\()/,
}
const forbiddenModules = /^(?:node:)?(?:child_process|cluster|vm|module|worker_threads|inspector|repl)$|^bun:ffi$/

/** Files with such code on purpose, none of it with anything from a request. */
const reasons: ReadonlyMap<string, string> = new Map([
  [
    'src/web/pages/console/usage-chart.tsx',
    'runs in the browser, with the address that its own page has for the chart',
  ],
  ['src/store/folder-lock.ts', 'calls flock of the C library, at the start'],
])

/** Packages with such code. docs/security.md says why none of it is reached. */
const knownPackages = ['nodemailer', 'zod']

function findings(path: string, text: string): readonly string[] {
  const { code, imports } = readSource(text)
  const found = Object.entries(forbiddenCode).flatMap(([what, pattern]) => (pattern.test(code) ? [what] : []))
  const modules = imports.flatMap(({ specifier }) => (forbiddenModules.test(specifier) ? [`imports ${specifier}`] : []))
  return [...found, ...modules].map((what) => `${path} ${what}`)
}

/** Every file that can be loaded from one, and the packages that they import. */
async function reachedFrom(start: string) {
  const sources = await readSources(root)
  const files = new Set<string>()
  const packages = new Set<string>()
  const waiting = [start]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const text = sources.get(path)
    if (text === undefined || files.has(path)) continue
    files.add(path)
    for (const { specifier } of readSource(text).imports) {
      if (specifier.startsWith('.')) waiting.push(posix.join(posix.dirname(path), specifier))
      else packages.add(specifier)
    }
  }
  return { files, packages, sources }
}

test('no file that a request can reach starts a program or runs text as code', async () => {
  const { files, sources } = await reachedFrom('src/app.ts')
  // The graph is the whole server, its database worker included, and not the command line.
  for (const path of [
    'src/pipeline/run.ts',
    'src/http/handler.ts',
    'src/store/sqlite-worker.ts',
    'src/pipeline/policy-endpoint.ts',
  ]) {
    expect(files).toContain(path)
  }
  expect(files).not.toContain('src/cli/supervise.ts')
  const found = [...files]
    .filter((path) => !reasons.has(path))
    .flatMap((path) => findings(path, sources.get(path) ?? ''))
  expect(found).toEqual([])
})

test('the packages that could are known', async () => {
  const { packages } = await reachedFrom('src/app.ts')
  const names = [...packages].flatMap((each) => /^(?!node:|bun(?::|$))((?:@[^/]+\/)?[^/]+)/.exec(each)?.[1] ?? [])
  const able: string[] = []
  for (const name of new Set(names)) {
    const paths = await Array.fromAsync(new Bun.Glob('**/*.{js,mjs}').scan({ cwd: join(root, 'node_modules', name) }))
    const texts = await Promise.all(paths.map((path) => Bun.file(join(root, 'node_modules', name, path)).text()))
    if (texts.some((text) => /child_process|\bnew Function\b|(?<![.\w$])eval\(/.test(text))) able.push(name)
  }
  expect(names).toContain('yaml')
  expect(able.sort()).toEqual(knownPackages)
})

test.each([
  "Bun.spawn(['sh'])",
  'Bun.$`ls`',
  "import { exec } from 'node:child_process'",
  "import vm from 'node:vm'",
  "import { dlopen } from 'bun:ffi'",
  'eval(text)',
  'new Function(text)',
  'Function(text)()',
  "''.constructor.constructor(text)()",
  'await import(name)',
  'require(name)',
  'new Worker(name)',
])('finds %s', (code) => {
  expect(findings('src/http/x.ts', code)).not.toEqual([])
})
