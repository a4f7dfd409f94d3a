// Starts and stops the gateway: configuration, app, listening, drain. Every reason not to start is printed as a sentence,
// without a stack trace.

import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import manifest from '../package.json' with { type: 'json' }
import { type App, startApp } from './app.ts'
import type { ServeOptions } from './cli/arguments.ts'
import { faultLines } from './cli/command.ts'
import { configInputs } from './cli/run.ts'
import { firstStartNotice, prettyStart, type StartFacts, shellWord, startLogLines } from './cli/start-output.ts'
import { startWithRoom, startWorker, supervise } from './cli/supervise.ts'
import { addressFile } from './config/client-settings.ts'
import { type Config, loadConfig, readProcess, setAboveEnvironment, shownSettings } from './config/config.ts'
import { formatFault } from './config/document.ts'
import { type ConfigReport, createConfigSource } from './config/source.ts'
import { systemClock } from './kernel/clock.ts'
import { builtInProviders } from './providers/data/built-in.ts'
import { openDataFolder } from './store/data-folder.ts'
import { StartRefusal } from './store/start-refusal.ts'
import { createLog, type Log } from './telemetry/log.ts'
import { createLogOutput } from './telemetry/log-output.ts'

export async function start({ workers, settings }: ServeOptions): Promise<void> {
  startWithRoom(readProcess().env, process.argv.slice(2))
  setAboveEnvironment(settings)
  if (workers === undefined) await serve('own port')
  else await serveWithWorkers(workers)
}

export async function serve(port: 'own port' | 'shared port'): Promise<void> {
  surviveFailedOutput()
  const load = (fileText?: string) => loadConfig({ ...configInputs(), fileText })
  const initial = load()
  for (const warning of initial.warnings) process.stderr.write(`warning: ${formatFault(warning)}\n`)
  if ('faults' in initial)
    return fail(`tollgate cannot start, because the configuration is wrong:${faultLines(initial.faults)}`)

  const output = createLogOutput(process.stdout, (lines) =>
    log.warn('lines of the log could not be written and are lost', { lines, lines_since_start: output.dropped() }),
  )
  const log = createLog({ format: initial.config.logFormat, clock: systemClock, write: output.write })
  const source = createConfigSource({
    initial,
    load,
    report: (report) => logReport(log, report),
    describe: (config) => shownSettings(config, configInputs()),
  })
  const endEarly = endOnSignal()
  const broken = Promise.withResolvers<void>()
  let app: App
  try {
    app = await startApp({
      source,
      clock: systemClock,
      loopClock: systemClock,
      log,
      sharesPort: port === 'shared port',
      logLinesDropped: output.dropped,
      onBroken: broken.resolve,
      onProgress: (line) => process.stderr.write(`${line}\n`),
    })
  } catch (error) {
    log.flush()
    if (!(error instanceof StartRefusal)) throw error
    fail(`tollgate cannot start: ${error.message}`)
    // A database connection that was opened before would keep the process alive.
    process.exit()
  }
  writeAddress(app, initial.config, log)
  const announced = announce(app, initial.config, log)
  endEarly.off()
  const stop = stopOnSignal(app, log, announced)
  if (port === 'own port') stopWithNpx()
  void broken.promise.then(() => stop(1))
  await announced
  if (port === 'shared port') process.send?.('ready')
}

/** Several processes on one port share a database, so it cannot be the embedded one, which has a single writer. */
async function serveWithWorkers(count: number): Promise<void> {
  surviveFailedOutput()
  const loaded = loadConfig(configInputs())
  if (!('faults' in loaded)) {
    const { databaseUrl, port } = loaded.config
    if (databaseUrl === undefined) {
      return fail(
        'tollgate cannot start: --workers needs PostgreSQL, because only one process can write to the embedded database. Set DATABASE_URL (docs/operate/scale.md), or omit --workers.',
      )
    }
    if (port === 0) return fail('tollgate cannot start: --workers needs a fixed port, not 0. Try: --port 8080')
  }
  const supervision = supervise({
    count,
    clock: systemClock,
    startWorker,
    wait: (milliseconds) => Bun.sleep(milliseconds),
    report: (line) => void process.stderr.write(`tollgate: ${line}\n`),
  })
  process.on('SIGTERM', () => supervision.stop('SIGTERM'))
  process.on('SIGINT', () => supervision.stop('SIGINT'))
  stopWithNpx()
  process.exit(await supervision.done)
}

/** A failed write emits an error, which would end the process: a full disk, or a pipe whose reader is gone (`| head`). */
function surviveFailedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
}

/** For commands without an address, which look for the gateway in its data folder. */
function writeAddress({ url }: App, { dataFolder }: Config, log: Log): void {
  try {
    // Warnings about the folder were printed when the gateway opened it.
    openDataFolder(dataFolder, () => {}).write(addressFile, `${url}\n`)
  } catch (thrown) {
    log.warn('cannot write the address file: commands need TOLLGATE_URL to find this gateway', {
      error: String(thrown),
    })
  }
}

async function announce(app: App, config: Config, log: Log): Promise<void> {
  const facts = await startFacts(app, config)
  await app.firstStart.show((firstKey) => {
    const shown = firstKey === undefined ? { ...facts, first: undefined } : facts
    if (config.logFormat === 'pretty') process.stdout.write(prettyStart(shown))
    else {
      process.stderr.write(firstStartNotice(shown))
      for (const { level, message, fields } of startLogLines(shown)) log[level](message, fields)
    }
    // Buffered lines are not written yet.
    log.flush()
  })
}

async function startFacts(app: App, config: Config): Promise<StartFacts> {
  const providers = app.providers()
  return {
    version: manifest.version,
    url: app.url,
    publicUrl: config.publicUrl,
    isBehindProxy: config.trustedProxies.length > 0 || config.publicUrl?.startsWith('https:') === true,
    dataFolder: shownPath(config.dataFolder),
    engine: app.engine,
    first: await firstFacts(app),
    keyReference: keyReference(app),
    managementToken:
      app.adminToken.file === undefined ? app.adminToken.source : `${shownPath(app.adminToken.file)} (0600)`,
    providersOn: [...providers.values()].map(({ id, source, transport }) => ({
      id,
      source,
      models: app.modelCount(id),
      offline: transport !== undefined,
    })),
    providersOff: builtInProviders.filter(({ id }) => !providers.has(id)),
  }
}

async function firstFacts({ firstStart, openingCredit, createSignInPath }: App): Promise<StartFacts['first']> {
  if (firstStart.firstKey === undefined) return undefined
  return {
    key: firstStart.firstKey,
    keyFile: shownPath(firstStart.firstKeyFile),
    signInPath: await createSignInPath(),
    openingCredit,
  }
}

function keyReference({ firstStart: { firstKeyFile } }: App): string {
  return existsSync(firstKeyFile) ? `$(cat ${shellWord(shownPath(firstKeyFile))})` : '$TOLLGATE_KEY'
}

/** Relative if it is inside the working folder. */
function shownPath(path: string): string {
  const inside = relative(process.cwd(), path)
  return inside.startsWith('..') ? path : `./${inside}`
}

/** Before there is anything to drain. Explicit, because the first process of a container ignores signals by default. */
function endOnSignal(): { off(): void } {
  const end = (signal: NodeJS.Signals) => {
    process.stderr.write(`tollgate: ${signal} while starting; no request was served\n`)
    process.exit(0)
  }
  const signals = ['SIGTERM', 'SIGINT'] as const
  for (const signal of signals) process.on(signal, end)
  return {
    off() {
      for (const signal of signals) process.off(signal, end)
    },
  }
}

/** The first signal drains; a second one shortens the wait. Stops only after the first key has been recorded as shown. */
function stopOnSignal(app: App, log: Log, announced: Promise<void>): (exitCode: number) => void {
  let stopping = false
  const stop = (exitCode: number): void => {
    if (stopping) return app.shortenDrain()
    stopping = true
    log.info('stopping after the running requests')
    log.flush()
    const stopped = announced.then(() => app.stop())
    void stopped.then((drained) => {
      if (!drained) process.stderr.write('tollgate: some requests did not end in time and were cut off\n')
      process.exit(exitCode)
    })
  }
  const onSignal = () => stop(0)
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  // The supervising process is gone: finish what runs and accept nothing new.
  process.on('disconnect', onSignal)
  return stop
}

const parentCheckMs = 1000

/**
 * `npx` passes SIGTERM only to the shell in which it runs this program. Where that is dash, as on Debian, the shell ends
 * without passing it on, and the gateway would keep running unseen under another parent.
 */
function stopWithNpx(): void {
  if (readProcess().env.npm_lifecycle_event !== 'npx') return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, 'SIGTERM')
  }, parentCheckMs)
  timer.unref()
  // A second signal would shorten the drain that the first one began.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => clearInterval(timer))
}

function logReport(log: Log, report: ConfigReport): void {
  if (report.kind === 'deleted') {
    return log.warn(`${report.configPath} is gone; the last valid configuration stays in effect`)
  }
  if (report.kind === 'refused') {
    return log.error(
      `the changed configuration is wrong; the last valid one stays in effect${faultLines(report.faults)}`,
    )
  }
  for (const warning of report.warnings) log.warn(formatFault(warning))
  if (report.needsRestart.length > 0) log.warn(`needs a restart to take effect: ${report.needsRestart.join(', ')}`)
  log.info('the changed configuration is in effect')
}

function fail(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = 1
}
