// Links between files of this repository: in Markdown, and references to decision records in code and prose. A rule is
// shown to fail on an example that breaks it. Addresses on the web are not requested.

import { expect, test } from 'bun:test'
import { join, posix } from 'node:path'

const root = join(import.meta.dir, '..')
const folder = 'docs/decisions/'
/** The example that shows what a broken reference is. */
const self = 'test/links.test.ts'

const files = await readTexts(
  '{src,test,bench,challenge,docs,deploy,scripts,bin}/**/*.{ts,tsx,js,lua,sql,md,sh,yaml,yml}',
  '*.md',
)
const paths = new Set(
  await Array.fromAsync(new Bun.Glob('{src,test,bench,challenge,docs,deploy,scripts,bin}/**').scan(root)),
)
for (const path of new Bun.Glob('*').scanSync(root)) paths.add(path)

async function readTexts(...patterns: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const found = await Promise.all(patterns.map((pattern) => Array.fromAsync(new Bun.Glob(pattern).scan(root))))
  const names = found.flat().filter((path) => path !== self)
  return new Map(await Promise.all(names.map(async (path) => [path, await Bun.file(join(root, path)).text()] as const)))
}

/** References to records that do not exist: `docs/decisions/0034`, `decision 0012`, `docs/decisions/0034, 0083`. */
function missingRecords(text: string): string[] {
  const references = text.matchAll(/\bdecisions?[/ ](\d{4}[\w-]*(?:(?:, | and )\d{4}\b)*|(?<=\/)[\w-]+(?=\.md))/g)
  return [...references].flatMap(([, list = '']) => list.split(/, | and /)).filter((name) => !hasRecord(name))
}

/** A number, or the whole name of its page. */
function hasRecord(name: string): boolean {
  return /^\d{4}$/.test(name)
    ? [...paths].some((path) => path.startsWith(`${folder}${name}-`))
    : paths.has(`${folder}${name}.md`)
}

/** Relative links of a Markdown file to a file, a folder or a heading that does not exist. */
function brokenLinks(path: string, text: string): string[] {
  const links = [...proseOf(text).matchAll(/\]\(<?([^)\s>]+)/g)].map(([, href = '']) => href)
  return links.filter((href) => {
    if (/^(?:\w+:|\/)/.test(href)) return false
    const [file = '', heading] = decodeURI(href).split('#')
    const target = file === '' ? path : posix.join(posix.dirname(path), file).replace(/\/$/, '')
    if (!paths.has(target) && ![...paths].some((each) => each.startsWith(`${target}/`))) return true
    return heading !== undefined && target.endsWith('.md') && !headingsOf(files.get(target) ?? '').includes(heading)
  })
}

const proseOf = (text: string): string => text.replaceAll(/^```.*?^```/gms, '')

/** As GitHub names them. A heading that occurs again gets a number. */
function headingsOf(text: string): string[] {
  const seen = new Map<string, number>()
  return [...proseOf(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => {
    const id = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-')
    const count = seen.get(id) ?? 0
    seen.set(id, count + 1)
    return count === 0 ? id : `${id}-${count}`
  })
}

test('every decision record that a file refers to exists', () => {
  const missing = [...files].flatMap(([path, text]) => missingRecords(text).map((name) => `${path}: ${name}`))
  expect(missing).toEqual([])
})

test('every link of a Markdown file leads to a file and a heading of this repository', () => {
  const pages = [...files].filter(([path]) => path.endsWith('.md'))
  expect(pages.length).toBeGreaterThan(50)
  expect(pages.flatMap(([path, text]) => brokenLinks(path, text).map((href) => `${path}: ${href}`))).toEqual([])
})

test('the index of the decisions lists every record once', () => {
  const listed = [...(files.get(`${folder}README.md`) ?? '').matchAll(/^\| \[[^\]]+\]\(([^)]+)\)/gm)].map(
    ([, to]) => to,
  )
  const records = [...paths].filter((path) => path.startsWith(folder) && path !== `${folder}README.md`)
  expect(listed).toEqual(records.map((path) => path.slice(folder.length)).toSorted())
})

test('the start page of the documentation lists every page once', () => {
  const listed = [...(files.get('docs/README.md') ?? '').matchAll(/\]\(([^)]+\.md)\)/g)].map(([, to]) => `docs/${to}`)
  const pages = [...files.keys()].filter(
    (path) => /^docs\/.*\.md$/.test(path) && !path.startsWith(folder) && path !== 'docs/README.md',
  )
  expect(listed.toSorted()).toEqual(pages.toSorted())
})

test('finds references to missing records in every form', () => {
  expect(missingRecords('// why (docs/decisions/9999). See decision 0007 and decisions/0007-bun.md.')).toEqual(['9999'])
  expect(missingRecords('(decision 9998), docs/decisions/0007, 9997')).toEqual(['9998', '9997'])
  expect(missingRecords('[7](docs/decisions/0007-deno.md), docs/decisions/speed.md')).toEqual(['0007-deno', 'speed'])
  expect(missingRecords('docs/decisions/README.md, docs/decisions/performance.md')).toEqual([])
})

test('finds links to missing files and headings', () => {
  const text =
    '# Here\n[a](missing.md) [b](decisions/0007-bun.md#nothing) [c](#here) [d](errors.md) [e](https://example.com)'
  expect(brokenLinks('docs/page.md', text)).toEqual(['missing.md', 'decisions/0007-bun.md#nothing', '#here'])
})
