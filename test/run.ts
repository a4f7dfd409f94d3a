// `npm test`: every check, every test beside the code and in test/, and a last line with the counts. With arguments, only the
// tests that `bun test` finds by them (`npm test -- src/wire`, `npm test -- -t 'a sentence'`).

import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { availableParallelism, freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { runChecks } from './check.ts'
import { findPostgresPrograms, preparePostgres } from './parts/postgres.ts'
import { makeProgram } from './parts/program.ts'
import { fetchedVariable } from './recipes/fetched.ts'
import { fileOf, mergeRepeated, type Report, readReport, staleTimes, type Tests, unexcused } from './runner/report.ts'
import { slowFiles } from './slow-files.ts'
import { testLimitMs } from './time-limit.ts'

const root = join(import.meta.dir, '..')

/** Enough to notice a file that delays the whole run. */
const slowestShown = 10

/** More than a complete run has ever needed for its databases, browsers' profiles and compiled gateway. */
const memoryFolderBytes = 8 * 2 ** 30

/**
 * The temporary folder of a complete run: in memory where there is room, because hundreds of databases that sync every
 * commit keep a disk busy. Other users, such as PostgreSQL's, must be able to enter it.
 */
async function makeTemporaryFolder(): Promise<string> {
  const free = await statfs('/dev/shm').catch(() => undefined)
  const hasRoom = free !== undefined && free.bavail * free.bsize > memoryFolderBytes && freemem() > memoryFolderBytes
  const folder = await mkdtemp(join(hasRoom ? '/dev/shm' : tmpdir(), 'tollgate-test-'))
  await chmod(folder, 0o755)
  return folder
}

async function runTests(args: readonly string[]): Promise<Tests> {
  if (args.length > 0) return { ...(await runFiles({ args, files: [] })), unsteady: [] }
  const fetched = process.env[fetchedVariable] ?? tmpdir()
  const folder = await makeTemporaryFolder()
  process.env.TMPDIR = folder
  process.env[fetchedVariable] = fetched
  try {
    // A whole run shares a database server and the compiled gateway: many files need them.
    const hasPostgres = findPostgresPrograms() !== undefined
    const [program, server] = await Promise.all([makeProgram(folder), hasPostgres ? preparePostgres() : undefined])
    await using prepared = server
    const env = { ...prepared?.env, ...program }
    return await repeatFailed(await runFiles({ files: await testFiles(), env }), env)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** More failed files than that are not the machine's fault. */
const repeatedFilesMax = 12

/**
 * Runs the files with failed tests once more, one at a time: a machine that stood still for half a minute breaks limits
 * that no test sets. What passes then does not fail the run, but it is listed, and has to be fixed.
 */
async function repeatFailed(first: Report, env: Record<string, string>): Promise<Tests> {
  const files = [...new Set(first.failed.map(fileOf))]
  if (files.length === 0 || files.length > repeatedFilesMax) return { ...first, unsteady: [] }
  const stillFailed: string[] = []
  for (const file of files) {
    console.log(`\nOnce more, by itself: ${file}`)
    stillFailed.push(...(await runFiles({ files: [file], env })).failed)
  }
  return mergeRepeated(first, stillFailed)
}

interface Files {
  readonly args?: readonly string[]
  readonly files: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

async function runFiles({ args = [], files, env = {} }: Files): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-report-'))
  try {
    const report = join(folder, 'report.xml')
    const timings = join(folder, 'timings.json')
    await writeFile(timings, timingsOf(files))
    const child = Bun.spawn([...bunTest({ report, timings }), ...args, ...files.map((file) => `./${file}`)], {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const exitCode = await child.exited
    const file = Bun.file(report)
    const outcome = readReport((await file.exists()) ? await file.text() : '', files)
    // Some failures are not in Bun's report, such as no file that matches the arguments.
    if (exitCode === 0 || outcome.failed.length > 0) return outcome
    return { ...outcome, failed: [`bun test ended with exit code ${exitCode}`] }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Test files spend more than half of their time waiting, for a timer, a browser or a server that starts. */
const processes = 3 * availableParallelism()

/**
 * The files that a process runs share its modules: reading and compiling the gateway anew for each of them took a third of
 * the run. A process that dies fails its file and not the run.
 */
function bunTest({ report, timings }: { report: string; timings: string }): string[] {
  return [
    process.execPath,
    'test',
    '--no-isolate',
    `--parallel=${processes}`,
    // Bun forgets what test/time-limit.ts sets after the first file of a process.
    `--timeout=${testLimitMs}`,
    `--timings=${timings}`,
    '--reporter=junit',
    `--reporter-outfile=${report}`,
  ]
}

/** In Bun's format, in milliseconds. Bun would start a file that is not in it first. */
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
const [checks, tests] = await Promise.all([args.length === 0 ? runChecks() : [], runTests(args)])
const brokenChecks = checks.filter(({ problem }) => problem !== undefined).map(({ name }) => `check: ${name}`)
const mustRun = process.env.TOLLGATE_TEST_SKIPS === 'none' ? unexcused(tests.skipped) : []

const failed = [...brokenChecks, ...tests.failed, ...mustRun.map((name) => `skipped: ${name}`)]
const passed = checks.length - brokenChecks.length + tests.passed
if (args.length === 0) {
  list('Slowest', slowestOf(tests.seconds))
  list('Other than in test/slow-files.ts', staleTimes(tests.seconds))
}
list('Skipped', tests.skipped)
list('Unsteady: failed, then passed when their file ran by itself', tests.unsteady)
list('Failed', failed)
const counts = [`${passed} passed`, `${failed.length} failed`]
if (tests.skipped.length > 0) counts.push(`${tests.skipped.length} skipped`)
console.log(`\n${counts.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
