// The gateway as a process on data that outlives it: started, killed, and started again.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gatewayCommand, sourceCommand } from './program.ts'

/** The files that remain when a gateway dies. */
export interface CrashData {
  readonly dataFolder: string
  /** undefined = SQLite in the data folder. */
  readonly databaseUrl: string | undefined
  readonly configPath: string
}

export interface CrashGateway {
  readonly url: string
  /** The first key. */
  readonly key: string
  readonly pid: number
  /** Resolves with how it ended: an exit code, or the name of a signal. */
  readonly ended: Promise<number | string>
  isAlive(): boolean
  /** Sends SIGKILL. */
  kill(): Promise<void>
  /** Sends SIGTERM. Resolves with how it ended. */
  stop(): Promise<number | string>
  /** Log lines of level error, which a test must not cause. */
  errors(): readonly string[]
  /** Everything it printed lately, for a failure's message. */
  lastLines(): string
}

export interface CrashStart {
  /** As in TOLLGATE_FAILPOINTS; absent = none. */
  readonly failpoints?: string
  /** Put before the command, such as a tracer. */
  readonly prefix?: readonly string[]
  /** Run in place of the gateway's program, such as the launcher. */
  readonly command?: readonly string[]
  /** Beside the gateway's own variables. */
  readonly env?: Readonly<Record<string, string>>
  /** Files that are loaded into it before it starts. They patch modules, so it runs from source. */
  readonly preload?: readonly string[]
  /** It has the machine to itself, and may turn calls away when it is too busy. */
  readonly isAlone?: boolean
  /** Sees every line as it is printed. */
  onLine?(line: string): void
}

const keptLines = 50

/** On a machine that it shares with other tests it would shed load. */
const neverBusyFile = join(import.meta.dir, 'never-busy.ts')

/** PostgreSQL ends connections that are slow for seconds, and on a busy machine a gateway that starts is. */
const slowDatabase = /statement timeout|idle-in-transaction timeout|Connection timeout|no answer within/

/**
 * Resolves when it listens; rejects with what it printed if it ends before. As a supervisor would, it starts a gateway
 * again whose database was too slow.
 */
export async function startCrashGateway(data: CrashData, start: CrashStart = {}): Promise<CrashGateway> {
  for (;;) {
    try {
      return await startOnce(data, start)
    } catch (thrown) {
      if (!slowDatabase.test(String(thrown))) throw thrown
    }
  }
}

async function startOnce(data: CrashData, start: CrashStart): Promise<CrashGateway> {
  const command = start.command ?? (start.preload === undefined ? gatewayCommand() : sourceCommand)
  const child = Bun.spawn([...(start.prefix ?? []), ...command], {
    cwd: data.dataFolder,
    env: environmentOf(data, start),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const listening = Promise.withResolvers<string>()
  const lines: string[] = []
  const errors: string[] = []
  const take = (line: string) => {
    start.onLine?.(line)
    lines.push(line)
    if (lines.length > keptLines) lines.shift()
    if (line.includes('"level":"error"')) errors.push(line)
    const url = /listening on (http:\/\/[0-9.:]+)/.exec(line)?.[1]
    if (url !== undefined) listening.resolve(url)
  }
  const read = Promise.all([readLines(child.stdout, take), readLines(child.stderr, take)])
  // The test process may end first.
  const killAtExit = () => child.kill('SIGKILL')
  process.on('exit', killAtExit)
  const ended = child.exited.then(async (exitCode) => {
    process.off('exit', killAtExit)
    await read
    listening.reject(new Error(`the gateway ended before it listened:\n${lines.join('\n')}`))
    return child.signalCode ?? exitCode
  })
  const url = await listening.promise
  const end = (signal: 'SIGKILL' | 'SIGTERM') => {
    child.kill(signal)
    return ended
  }
  return {
    url,
    // With several gateways on one database only the first one's folder has it.
    get key() {
      return readFileSync(join(data.dataFolder, 'first-key'), 'utf8').trim()
    },
    pid: child.pid,
    ended,
    isAlive: () => child.exitCode === null && child.signalCode === null,
    kill: async () => void (await end('SIGKILL')),
    stop: () => end('SIGTERM'),
    errors: () => errors,
    lastLines: () => lines.join('\n'),
  }
}

/** Nothing of the caller's environment but the path: a provider's key in it would switch that provider on. */
function environmentOf(data: CrashData, start: CrashStart): Record<string, string> {
  const { failpoints, env, command, preload = [], isAlone = command !== undefined } = start
  const files = isAlone ? preload : [neverBusyFile, ...preload]
  return {
    PATH: process.env.PATH ?? '',
    HOME: data.dataFolder,
    TOLLGATE_PORT: '0',
    TOLLGATE_DATA: data.dataFolder,
    TOLLGATE_CONFIG: data.configPath,
    TOLLGATE_LOG: 'json',
    TOLLGATE_TEST: '1',
    // As the launcher does, so that it need not start a second time.
    BUN_CONFIG_MAX_HTTP_REQUESTS: '65000',
    // No balancer has to notice that it leaves.
    TOLLGATE_DRAIN_DELAY_SECONDS: '0',
    ...(data.databaseUrl !== undefined && { DATABASE_URL: data.databaseUrl }),
    ...(failpoints !== undefined && { TOLLGATE_FAILPOINTS: failpoints }),
    ...(files.length > 0 && { BUN_OPTIONS: files.map((file) => `--preload ${file}`).join(' ') }),
    ...env,
  }
}

/** Resolves when the stream ends; the last line may have no end. */
export async function readLines(stream: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of stream) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    for (const line of parts) take(line)
  }
  if (rest !== '') take(rest)
}
