// The command line against a management API on loopback. Commands run in this process, which is a hundred times cheaper than
// starting the program; that the program itself reads its arguments, streams and environment is tested with `spawn`.

import { describe, expect } from 'bun:test'
import { join } from 'node:path'
import { readArguments } from '../../src/cli/arguments.ts'
import { Refusal } from '../../src/cli/refusal.ts'
import { configInputs, runCommand } from '../../src/cli/run.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createEngine, createThrowAwayFolder, type Place, type TestEngine } from './engines.ts'
import { type ManagementParts, managementToken, openManagement, type TestManagement } from './management.ts'
import { gatewayCommand } from './program.ts'

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
}

export interface Ran {
  readonly exit: number
  readonly out: string
  readonly err: string
}

export interface World extends AsyncDisposable {
  readonly management: TestManagement
  readonly folder: string
  run(args: string, options?: RunOptions): Promise<Ran>
  /** Starts the program. */
  spawn(args: string, options?: RunOptions): Bun.Subprocess<Blob, 'pipe', 'pipe'>
  /** Runs with --json, expects 0. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into every kind of answer.
  json(args: string, options?: RunOptions): Promise<any>
}

/** Runs a command as `main.ts` does, without a terminal. */
export async function runHere(
  args: readonly string[],
  { env = {}, input = '', cwd }: RunOptions & { readonly cwd: string },
): Promise<Ran> {
  const out: string[] = []
  const err: string[] = []
  const terminal = {
    color: false,
    isInteractive: false,
    isWatched: false,
    showProgress: () => {},
    print: (text: string) => void out.push(text),
    complain: (text: string) => void err.push(text),
    complainWhenStopped: () => {},
    readInput: async () => input,
    ask: async () => '',
    askSecret: async () => '',
  }
  try {
    const command = readArguments(args)
    if (command.kind !== 'management') throw new Error(`${args.join(' ')} is not a management command`)
    const inputs = { ...configInputs(), env, cwd, stdoutIsTerminal: false }
    const exit = await runCommand(command.call, { inputs, terminal, clock: systemClock })
    return { exit, out: out.join(''), err: err.join('') }
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown
    return { exit: thrown.exit, out: '', err: thrown.text('tollgate --help') }
  }
}

const route = {
  priority: 1,
  weight: 1,
  state: 'unused',
  wait_ms: null,
  why: null,
  health: 'healthy',
  first_event_ms: null,
  tokens_per_second: null,
} as const
const model = {
  context_tokens: null,
  max_output_tokens: null,
  tags: [],
  released: null,
  source: 'built in',
  callable: true,
  routes: [],
}
const price = { cache_write: '1.00', cache_write_1h: '1.00' }

const catalog = () => [
  {
    ...model,
    id: 'acme/large',
    name: 'Acme Large',
    owned_by: 'acme',
    price: { ...price, input: '2.50', output: '10.00', cache_read: '0.25' },
    tags: ['tools', 'vision'],
    context_tokens: 200_000,
    max_output_tokens: 32_000,
    released: '2026-01-31',
    routes: [{ ...route, provider: 'acme', upstream_model: 'l1' }],
  },
  {
    ...model,
    id: 'acme/small',
    name: 'Acme Small',
    owned_by: 'acme',
    price: { ...price, input: '0.10', output: '0.40', cache_read: '0.10' },
    tags: ['tools'],
    released: '2026-02-01',
  },
  {
    ...model,
    id: 'beta/odd',
    name: 'Odd',
    owned_by: 'beta',
    price: null,
    callable: false,
    context_tokens: 8000,
    routes: [{ ...route, provider: 'beta', upstream_model: 'odd' }],
  },
  {
    ...model,
    id: 'beta/open',
    name: 'Open',
    owned_by: 'beta',
    price: 'free' as const,
    routes: [
      { ...route, provider: 'beta', upstream_model: 'open', state: 'cooldown' as const, health: 'ejected' as const },
    ],
  },
]

export async function openWorld(engine: TestEngine, parts: ManagementParts = {}): Promise<World> {
  const management = await openManagement(engine, { catalog, ...parts })
  const folder = createThrowAwayFolder()
  const words = (args: string) => args.split(' ').map((arg) => arg.replaceAll('~', ' '))
  const environment = (env: RunOptions['env']) => ({
    HOME: join(folder.path, 'home'),
    TOLLGATE_URL: management.url,
    TOLLGATE_ADMIN_TOKEN: managementToken,
    ...env,
  })
  const run = (args: string, { env, input = '' }: RunOptions = {}): Promise<Ran> =>
    runHere(words(args), { env: environment(env), input, cwd: folder.path })
  return {
    management,
    folder: folder.path,
    run,
    spawn: (args, { env, input = '' } = {}) =>
      Bun.spawn([...gatewayCommand(), ...words(args)], {
        cwd: folder.path,
        env: { PATH: process.env.PATH ?? '', ...environment(env) },
        stdio: [new Blob([input]), 'pipe', 'pipe'],
      }),
    async json(args, options) {
      const ran = await run(`${args} --json`, options)
      expect([ran.exit, ran.err]).toEqual([0, ran.err])
      return JSON.parse(ran.out)
    },
    async [Symbol.asyncDispose]() {
      await management[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

/** The output of commands does not depend on the engine behind the API, whose own tests run on both. */
export function onSqlite(tests: (engine: TestEngine) => void): void {
  describe('on sqlite', () => tests(createEngine('sqlite')))
}

/** Where a database is that a command reads by itself. */
export type OfflinePlace = Pick<Place, 'url' | 'dataFolder'>

/** A command that needs no gateway. */
export function runOffline({ dataFolder, url }: OfflinePlace, ...args: string[]): Promise<Ran> {
  const env = { TOLLGATE_DATA: dataFolder, ...(url !== undefined && { DATABASE_URL: url }) }
  return runHere(args, { env, cwd: dataFolder })
}

export async function ranOf(child: Bun.Subprocess<Blob | 'ignore', 'pipe', 'pipe'>): Promise<Ran> {
  const [exit, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { exit, out, err }
}
