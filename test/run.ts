// `npm test`: every check, every test beside the code and in test/, and a last line that counts them. Arguments are
// passed on to `bun test` (`npm test -- src/wire`, `npm test -- -t 'a sentence'`).

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { runChecks } from './check.ts'
import { findPostgresPrograms, preparePostgres } from './parts/postgres.ts'
import { makeProgram } from './parts/program.ts'
import { joinReports, type Report, readReport } from './runner/read-report.ts'
import { unexcused } from './runner/skips.ts'
import { staleTimes } from './runner/stale-times.ts'
import { slowFiles, waitingFiles } from './slow-files.ts'

const root = join(import.meta.dir, '..')

/** So that a file which makes everyone wait is noticed. */
const slowestShown = 10

async function runTests(args: readonly string[]): Promise<Report> {
  if (args.length > 0) return await runGroup({ args, files: [] })
  const files = await testFiles()
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-test-'))
  try {
    // Worth their seconds only where many files begin with them: a database, and the gateway as one program.
    const hasPostgres = findPostgresPrograms() !== undefined
    const [program, server] = await Promise.all([makeProgram(folder), hasPostgres ? preparePostgres() : undefined])
    await using prepared = server
    const env = { ...prepared?.env, ...program }
    const { waiting = [], working = [] } = Object.groupBy(files, (file) =>
      waitingFiles.has(file) ? 'waiting' : 'working',
    )
    const groups = [
      { files: working, env },
      // Alone in its lane a file would run in the runner's own process, and take it along.
      { files: waiting, env, lanes: 2 },
    ]
    return joinReports(await Promise.all(groups.filter((group) => group.files.length > 0).map(runGroup)))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

interface Group {
  readonly args?: readonly string[]
  readonly files: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly lanes?: number
}

/**
 * Three processes for two cores: half of what journeys take they wait, for a provider, a browser or a server that starts;
 * with four of them, tests began to wait for each other. Those that do little else than wait have two beside these.
 */
const workingLanes = Math.ceil(1.5 * availableParallelism())

async function runGroup({ args = [], files, env = {}, lanes = workingLanes }: Group): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-group-'))
  try {
    const report = join(folder, 'report.xml')
    const timings = join(folder, 'timings.json')
    await writeFile(timings, timingsOf(files))
    const child = Bun.spawn([...bunTest({ report, timings, lanes }), ...args, ...files.map((file) => `./${file}`)], {
      cwd: root,
      env: { ...process.env, ...env },
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

/** Each file in a fresh global; a process that dies fails its file and not the run. */
function bunTest({ report, timings, lanes }: { report: string; timings: string; lanes: number }): string[] {
  return [
    process.execPath,
    'test',
    '--isolate',
    `--parallel=${lanes}`,
    `--timings=${timings}`,
    '--reporter=junit',
    `--reporter-outfile=${report}`,
  ]
}

/** In Bun's format, in milliseconds. A file that is not in it would be taken for the slowest of all. */
function timingsOf(files: readonly string[]): string {
  return JSON.stringify({
    version: 1,
    files: Object.fromEntries(files.map((file) => [file, 1000 * (slowFiles[file] ?? 1)])),
  })
}

async function testFiles(): Promise<string[]> {
  const paths = await Array.fromAsync(new Bun.Glob('{src,test}/**/*.test.{ts,tsx}').scan({ cwd: root }))
  return paths.sort()
}

function list(title: string, names: readonly string[]): void {
  if (names.length > 0) console.log(`\n${title}:\n${names.map((name) => `  ${name}`).join('\n')}`)
}

function slowestOf(seconds: Report['seconds']): string[] {
  const slowest = [...seconds].sort(([, a], [, b]) => b - a).slice(0, slowestShown)
  return slowest.map(([file, took]) => `${took.toFixed(0)} s  ${file}`)
}

const args = process.argv.slice(2)
const [checks, tests] = await Promise.all([runChecks(), runTests(args)])
const brokenChecks = checks.filter(({ problem }) => problem !== undefined).map(({ name }) => `check: ${name}`)
const mustRun = process.env.TOLLGATE_TEST_SKIPS === 'none' ? unexcused(tests.skipped) : []

const failed = [...brokenChecks, ...tests.failed, ...mustRun.map((name) => `skipped: ${name}`)]
const passed = checks.length - brokenChecks.length + tests.passed
if (args.length === 0) {
  list('Slowest', slowestOf(tests.seconds))
  list('Other than in test/slow-files.ts', staleTimes(tests.seconds))
}
list('Skipped', tests.skipped)
list('Failed', failed)
const counts = [`${passed} passed`, `${failed.length} failed`]
if (tests.skipped.length > 0) counts.push(`${tests.skipped.length} skipped`)
console.log(`\n${counts.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
