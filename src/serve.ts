// Serving: configuration → app → listening → drain. Everything that can stop a start is told here in a sentence,
// without a stack.

import { relative } from 'node:path'
import manifest from '../package.json' with { type: 'json' }
import { type App, startApp } from './app.ts'
import type { ServeOptions } from './cli/arguments.ts'
import { configInputs } from './cli/run-command.ts'
import { firstStartNotice, prettyStart, type StartFacts, startLogLines } from './cli/start-output.ts'
import { startWithRoom, startWorker, supervise } from './cli/supervise.ts'
import { addressFile } from './config/client-settings.ts'
import { type Config, loadConfig, readProcess, setAboveEnvironment, shownSettings } from './config/config.ts'
import { type ConfigFault, formatFault } from './config/document.ts'
import { type ConfigReport, createConfigSource } from './config/source.ts'
import { systemClock } from './kernel/clock.ts'
import { builtInProviders } from './providers/registry.ts'
import { openDataFolder } from './store/data-folder.ts'
import { StartRefusal } from './store/start-refusal.ts'
import { createLog, type Log } from './telemetry/log.ts'

export async function start({ workers, settings }: ServeOptions): Promise<void> {
  startWithRoom(readProcess().env, process.argv.slice(2))
  setAboveEnvironment(settings)
  if (workers === undefined) await serve('own port')
  else await serveWithWorkers(workers)
}

export async function serve(port: 'own port' | 'shared port'): Promise<void> {
  const load = () => loadConfig(configInputs())
  const initial = load()
  for (const warning of initial.warnings) process.stderr.write(`warning: ${formatFault(warning)}\n`)
  if ('faults' in initial)
    return fail(`tollgate cannot start, the configuration is wrong:\n${faultLines(initial.faults)}`)

  const log = createLog({
    format: initial.config.logFormat,
    clock: systemClock,
    write: (text) => void process.stdout.write(text),
  })
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
      onBroken: broken.resolve,
      onProgress: (line) => process.stderr.write(`${line}\n`),
    })
  } catch (error) {
    log.flush()
    if (!(error instanceof StartRefusal)) throw error
    fail(`tollgate cannot start: ${error.message}`)
    // What was opened before the refusal, a database connection say, would keep the process waiting for work.
    process.exit()
  }
  tellCommands(app, initial.config, log)
  const announced = announce(app, initial.config, log)
  endEarly.off()
  const stop = stopOnSignal(app, log, announced)
  void broken.promise.then(() => stop(1))
  await announced
  if (port === 'shared port') process.send?.('ready')
}

/** Several processes on one port. They share a database, so it cannot be the embedded one, which has a single writer. */
async function serveWithWorkers(count: number): Promise<void> {
  const loaded = loadConfig(configInputs())
  if (!('faults' in loaded)) {
    const { databaseUrl, port } = loaded.config
    if (databaseUrl === undefined) {
      return fail(
        'tollgate cannot start: --workers needs PostgreSQL, because the embedded database is written by one process. Set DATABASE_URL (docs/operate/scale.md), or leave out --workers.',
      )
    }
    if (port === 0) return fail('tollgate cannot start: --workers needs a port of its own, not 0. Try: --port 8080')
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
  process.exit(await supervision.done)
}

/** Commands that are given no address find this gateway by its data folder. */
function tellCommands({ url }: App, { dataFolder }: Config, log: Log): void {
  try {
    // What is odd about the folder was told when the gateway opened it.
    openDataFolder(dataFolder, () => {}).write(addressFile, `${url}\n`)
  } catch (thrown) {
    log.warn('commands will not find this gateway by themselves; set TOLLGATE_URL for them', { error: String(thrown) })
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
    // Gathered lines are not shown yet.
    log.flush()
  })
}

async function startFacts(app: App, config: Config): Promise<StartFacts> {
  const providers = app.providers()
  return {
    version: manifest.version,
    url: app.url,
    isBehindProxy: config.trustedProxies.length > 0 || config.publicUrl?.startsWith('https:') === true,
    dataFolder: shownPath(config.dataFolder),
    engine: app.engine,
    first: await firstFacts(app),
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

/** As a person in this folder would write it. */
function shownPath(path: string): string {
  const inside = relative(process.cwd(), path)
  return inside.startsWith('..') ? path : `./${inside}`
}

/** Before there is anything to drain. The first process of a container has no ending by default: it would be ignored. */
function endOnSignal(): { off(): void } {
  const end = (signal: NodeJS.Signals) => {
    process.stderr.write(`tollgate: ${signal} while starting; nothing was served\n`)
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

/** The first signal drains; a second one shortens the wait. One that comes early waits until a key is known as shown. */
function stopOnSignal(app: App, log: Log, announced: Promise<void>): (exitCode: number) => void {
  let stopping = false
  const stop = (exitCode: number): void => {
    if (stopping) return app.hurry()
    stopping = true
    log.info('stopping: running requests are finished first')
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
  // The process that watches over this one is gone; what runs is finished, and nothing new is taken.
  process.on('disconnect', onSignal)
  return stop
}

function logReport(log: Log, report: ConfigReport): void {
  if (report.kind === 'deleted') {
    return log.warn(`${report.configPath} is gone; the last configuration stays in force`)
  }
  if (report.kind === 'refused') {
    return log.error(
      `the changed configuration is wrong; the last good one stays in force\n${faultLines(report.faults)}`,
    )
  }
  for (const warning of report.warnings) log.warn(formatFault(warning))
  if (report.needsRestart.length > 0) log.warn(`needs a restart to take effect: ${report.needsRestart.join(', ')}`)
  log.info('configuration changed and in force')
}

function faultLines(faults: readonly ConfigFault[]): string {
  return faults.map((fault) => `  ${formatFault(fault)}`).join('\n')
}

function fail(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = 1
}
