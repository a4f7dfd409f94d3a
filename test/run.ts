// `npm test`: every check, then every test beside the code and in test/, and a last line that counts them. Arguments
// are passed on to `bun test` (`npm test -- src/wire`, `npm test -- -t 'a sentence'`).

import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { runChecks } from './check.ts'

const root = join(import.meta.dir, '..')

interface Outcome {
  readonly passed: number
  readonly failed: readonly string[]
  readonly skipped: readonly string[]
  /** Files and the seconds that their tests took, longest first. */
  readonly slowest: readonly string[]
}

/** So that a file which makes everyone wait is noticed. */
const slowestShown = 10

async function runTests(args: readonly string[]): Promise<Outcome> {
  const files = args.length > 0 ? [] : await testFiles()
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-test-'))
  try {
    const report = join(folder, 'report.xml')
    const child = Bun.spawn([...bunTest(report), ...args, ...files], {
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

/** One process per core, each file in a fresh global; a process that dies fails its file and not the run. */
function bunTest(report: string): string[] {
  return [
    process.execPath,
    'test',
    `--parallel=${availableParallelism()}`,
    // Journeys start servers and databases; on a busy machine that takes longer than Bun's five seconds.
    '--timeout=30000',
    '--reporter=junit',
    `--reporter-outfile=${report}`,
  ]
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
    seconds.set(file, (seconds.get(file) ?? 0) + Number(attribute(attributes, 'time')))
    if (/<(?:failure|error)\b/.test(inside)) failed.push(name)
    else if (inside.includes('<skipped')) skipped.push(name)
    else passed += 1
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
