// The command line as scripts and people run it: processes of their own, against a management API on loopback.

import { expect } from 'bun:test'
import { join } from 'node:path'
import { createThrowAwayFolder, forEachEngine, type TestEngine } from './engines.ts'
import { managementToken, openManagement, type TestManagement } from './management.ts'

export const entry = join(import.meta.dir, '..', '..', 'src', 'main.ts')

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

const catalog = () => [
  {
    id: 'acme/large',
    name: 'Acme Large',
    price: { input: '2.50', output: '10.00', cache_read: '0.25' },
    tags: ['tools', 'vision'],
    context_tokens: 200_000,
    max_output_tokens: 32_000,
    routes: [{ provider: 'acme', health: 'healthy' }],
  },
  { id: 'acme/small', name: 'Acme Small', price: { input: '0.10', output: '0.40' }, tags: ['tools'], routes: [] },
  { id: 'beta/odd', name: 'Odd', price: null, tags: [], context_tokens: 8000, routes: [{ provider: 'beta' }] },
  { id: 'beta/open', name: 'Open', price: 'free', tags: [], routes: [{ provider: 'beta', health: 'cooling' }] },
]

export async function openWorld(engine: TestEngine): Promise<World> {
  const management = await openManagement(engine, { catalog })
  const folder = createThrowAwayFolder()
  const run = async (args: string, { env = {}, input = '' }: RunOptions = {}): Promise<Ran> => {
    const child = Bun.spawn(
      [process.execPath, '--no-install', entry, ...args.split(' ').map((arg) => arg.replaceAll('~', ' '))],
      {
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
      },
    )
    const [exit, out, err] = await Promise.all([
      child.exited,
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ])
    return { exit, out, err }
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
  forEachEngine((engine) => {
    if (engine.name === 'sqlite') tests(engine)
  })
}
