// The command line as scripts and people run it: processes of their own, against a management API on loopback.

import { describe, expect } from 'bun:test'
import { join } from 'node:path'
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
  /** Runs with --json, expects 0. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into every kind of answer.
  json(args: string, options?: RunOptions): Promise<any>
}

const route = { priority: 1, weight: 1, health: 'healthy', first_event_ms: null, tokens_per_second: null } as const
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
    routes: [{ ...route, provider: 'beta', upstream_model: 'open', health: 'ejected' as const }],
  },
]

export async function openWorld(engine: TestEngine, parts: ManagementParts = {}): Promise<World> {
  const management = await openManagement(engine, { catalog, ...parts })
  const folder = createThrowAwayFolder()
  const run = async (args: string, { env = {}, input = '' }: RunOptions = {}): Promise<Ran> => {
    const child = Bun.spawn([...gatewayCommand(), ...args.split(' ').map((arg) => arg.replaceAll('~', ' '))], {
      cwd: folder.path,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: join(folder.path, 'home'),
        TOLLGATE_URL: management.url,
        TOLLGATE_ADMIN_TOKEN: managementToken,
        ...env,
      },
      stdin: new Blob([input]),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    return await ranOf(child)
  }
  return {
    management,
    folder: folder.path,
    run,
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

/** What the commands say does not depend on the engine behind the API; its own tests run on both. */
export function onSqlite(tests: (engine: TestEngine) => void): void {
  describe('on sqlite', () => tests(createEngine('sqlite')))
}

/** Where a database is that a command reads by itself. */
export type OfflinePlace = Pick<Place, 'url' | 'dataFolder'>

/** A command that needs no gateway. */
export async function runOffline({ dataFolder, url }: OfflinePlace, ...args: string[]): Promise<Ran> {
  const child = Bun.spawn([...gatewayCommand(), ...args], {
    cwd: dataFolder,
    env: {
      PATH: process.env.PATH ?? '',
      TOLLGATE_DATA: dataFolder,
      ...(url === undefined ? {} : { DATABASE_URL: url }),
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  return await ranOf(child)
}

interface Ending {
  readonly exited: Promise<number>
  readonly stdout: ReadableStream
  readonly stderr: ReadableStream
}

async function ranOf(child: Ending): Promise<Ran> {
  const [exit, out, err] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  return { exit, out, err }
}
