// `npm test`: every check, then every test beside the code and in test/, and a last line that counts them. Arguments
// are passed on to `bun test` (`npm test -- src/wire`, `npm test -- -t 'a sentence'`).

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { runChecks } from './check.ts'
import { slowFiles } from './slow-files.ts'

const root = join(import.meta.dir, '..')

interface Outcome {
  readonly passed: number
  readonly failed: readonly string[]
  readonly skipped: readonly string[]
  /** Files and the seconds that they took, longest first. */
  readonly slowest: readonly string[]
}

/** So that a file which makes everyone wait is noticed. */
const slowestShown = 10

async function runTests(args: readonly string[]): Promise<Outcome> {
  const files = args.length > 0 ? [] : await testFiles()
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-test-'))
  try {
    const report = join(folder, 'report.xml')
    const timings = join(folder, 'timings.json')
    await writeFile(timings, timingsOf(files))
    const child = Bun.spawn([...bunTest(report, timings), ...args, ...files], {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const exitCode = await child.exited
    const file = Bun.file(report)
    const outcome = readReport((await file.exists()) ? await file.text() : '', files)
    // Bun knows of failures that its report leaves out, such as no file that matches the arguments.
    if (exitCode === 0 || outcome.failed.length > 0) return outcome
    return { ...outcome, failed: [`bun test ended with exit code ${exitCode}`] }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/**
 * Each file in a fresh global; a process that dies fails its file and not the run. Three processes for two cores: half of
 * what journeys take they wait, for a provider, a browser or a server that starts.
 */
function bunTest(report: string, timings: string): string[] {
  return [
    process.execPath,
    'test',
    `--parallel=${Math.ceil(1.5 * availableParallelism())}`,
    `--timings=${timings}`,
    // Journeys start servers and databases; on a busy machine that takes longer than Bun's five seconds.
    '--timeout=30000',
    '--reporter=junit',
    `--reporter-outfile=${report}`,
  ]
}

/** In Bun's format, in milliseconds. A file that is not in it would be taken for the slowest of all. */
function timingsOf(files: readonly string[]): string {
  const names = files.map((file) => file.slice(2))
  return JSON.stringify({
    version: 1,
    files: Object.fromEntries(names.map((name) => [name, 1000 * (slowFiles[name] ?? 1)])),
  })
}

async function testFiles(): Promise<string[]> {
  const paths = await Array.fromAsync(new Bun.Glob('{src,test}/**/*.test.{ts,tsx}').scan({ cwd: root }))
  return paths.sort().map((path) => `./${path}`)
}

/** Reads Bun's JUnit report. A file that could not be loaded is not in it, and so counts as failed when it was asked for. */
function readReport(xml: string, files: readonly string[]): Outcome {
  const failed: string[] = []
  const skipped: string[] = []
  const seconds = new Map<string, number>()
  let passed = 0
  for (const [, attributes = '', inside = ''] of xml.matchAll(/<testcase ([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs)) {
    const file = attribute(attributes, 'file')
    // Bun writes the inner group first.
    const groups = attribute(attributes, 'classname').split(' > ').filter(Boolean).reverse()
    const name = `${file}: ${[...groups, attribute(attributes, 'name')].join(' > ')}`
    seconds.set(file, 0)
    if (/<(?:failure|error)\b/.test(inside)) failed.push(name)
    else if (inside.includes('<skipped')) skipped.push(name)
    else passed += 1
  }
  // A file is a group of its own. The times of its tests do not add up to its time where they run at once.
  for (const [, attributes = ''] of xml.matchAll(/<testsuite ([^>]*)>/g)) {
    const file = attribute(attributes, 'file')
    if (attribute(attributes, 'name') === file && seconds.has(file))
      seconds.set(file, Number(attribute(attributes, 'time')))
  }
  for (const file of files) {
    if (!seconds.has(file.slice(2))) failed.push(`${file.slice(2)}: could not be loaded, or holds no test`)
  }
  const slowest = [...seconds].sort(([, a], [, b]) => b - a).slice(0, slowestShown)
  return { passed, failed, skipped, slowest: slowest.map(([file, took]) => `${took.toFixed(0)} s  ${file}`) }
}

const entities: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&apos;': "'", '&amp;': '&' }

function attribute(attributes: string, name: string): string {
  const value = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1] ?? ''
  return value.replace(/&\w+;/g, (entity) => entities[entity] ?? entity)
}

function list(title: string, names: readonly string[]): void {
  if (names.length > 0) console.log(`\n${title}:\n${names.map((name) => `  ${name}`).join('\n')}`)
}

const checks = await runChecks()
const brokenChecks = checks.filter(({ problem }) => problem !== undefined).map(({ name }) => `check: ${name}`)
const tests = await runTests(process.argv.slice(2))

const failed = [...brokenChecks, ...tests.failed]
const passed = checks.length - brokenChecks.length + tests.passed
if (process.argv.length === 2) list('Slowest', tests.slowest)
list('Skipped', tests.skipped)
list('Failed', failed)
const counts = [`${passed} passed`, `${failed.length} failed`]
if (tests.skipped.length > 0) counts.push(`${tests.skipped.length} skipped`)
console.log(`\n${counts.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
