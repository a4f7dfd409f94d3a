// An installation as an operator has it: a data folder, a configuration file, a provider on loopback, and the program as
// separate processes. For the tests of this folder; it judges nothing.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CrashGateway, startCrashGateway } from '../parts/crash-gateway.ts'
import { manage } from '../parts/manage.ts'
import { gatewayCommand } from '../parts/program.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'

export const root = join(import.meta.dir, '..', '..')

export interface Ran {
  readonly exit: number
  readonly out: string
  readonly err: string
}

export interface Site extends Disposable {
  /** Holds the data folder and whatever a test lays beside it. */
  readonly folder: string
  readonly dataFolder: string
  readonly upstream: Upstream
  start(databaseUrl?: string): Promise<CrashGateway>
  /** A command of the program; `env` beside the site's own. */
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ran>
  spawn(args: readonly string[], env?: Readonly<Record<string, string>>): Bun.Subprocess<'ignore', 'pipe', 'pipe'>
}

/** 3 tokens in at $3.00 and 2 out at $15.00 a million: $0.000039 a call, on the workspace's own key nothing. */
const config = (url: string) => `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: key-of-the-operator }
models:
  - { id: acme/large, price: { input: "3.00", output: "15.00" }, max_output_tokens: 1000, routes: [{ provider: acme, model: l }] }
`

/** A provider key is bound to its provider's address, so a copy of a site needs the upstream of the first. */
export function createSite(shared?: Upstream): Site {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-deploy-'))
  const dataFolder = join(folder, 'data')
  mkdirSync(dataFolder)
  const upstream =
    shared ??
    startUpstream((call, reply) => reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole))
  const configPath = join(folder, 'tollgate.yaml')
  writeFileSync(configPath, config(upstream.url))
  const spawn: Site['spawn'] = (args, env = {}) =>
    Bun.spawn([...gatewayCommand(), ...args], {
      cwd: folder,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: folder,
        TOLLGATE_DATA: dataFolder,
        TOLLGATE_CONFIG: configPath,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  return {
    folder,
    dataFolder,
    upstream,
    start: (databaseUrl) => startCrashGateway({ dataFolder, databaseUrl, configPath }),
    spawn,
    async run(args, env) {
      const child = spawn(args, env)
      const [exit, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
      return { exit, out, err }
    },
    [Symbol.dispose]() {
      if (!shared) upstream.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface Tenant {
  readonly workspaceId: string
  readonly key: string
}

export const ownKey = 'key-of-the-tenant'

/** A workspace with $25.00, a key, and its own provider key. */
export async function addTenant({ dataFolder }: Site, url: string): Promise<Tenant> {
  const managed = { url, dataFolder }
  const workspace = await manage(managed, 'POST', '/api/workspaces', { name: 'acme' })
  await manage(managed, 'POST', `/api/workspaces/${workspace.id}/topups`, { amount: '25.00' })
  const project = await manage(managed, 'POST', `/api/workspaces/${workspace.id}/projects`, { name: 'web — 中文 🚪' })
  const key = await manage(managed, 'POST', `/api/projects/${project.id}/keys`, { name: 'ci' })
  await manage(managed, 'PUT', `/api/workspaces/${workspace.id}/credentials/acme`, { api_key: ownKey })
  return { workspaceId: workspace.id, key: key.secret }
}

const triesMax = 50

/** Retries if the answer says so, as clients do: a gateway on a busy machine turns calls away for a moment. */
export async function ask(url: string, key: string, model: string): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
    })
    await response.clone().text()
    if (response.status !== 503 || !response.headers.has('retry-after') || tries === triesMax) return response
    await Bun.sleep(100)
  }
}

/** Calls without a pause until it is stopped; returns how many were answered. */
export function load({ url, key }: Pick<CrashGateway, 'url' | 'key'>) {
  let isOver = false
  let answered = 0
  const lane = async () => {
    while (!isOver) {
      const { status } = await ask(url, key, 'sandbox/echo')
      if (status !== 200) throw new Error(`a call under load was answered with ${status}`)
      answered++
    }
  }
  const lanes = Promise.all(Array.from({ length: 8 }, lane))
  return {
    answered: () => answered,
    async until(count: number) {
      while (answered < count) await Bun.sleep(1)
    },
    async stop() {
      isOver = true
      await lanes
    },
  }
}

/** Balance of every workspace, by id. */
export async function balances(site: Site, url: string): Promise<Record<string, string>> {
  const managed = { url, dataFolder: site.dataFolder }
  const { data } = await manage(managed, 'GET', '/api/workspaces')
  const found: Record<string, string> = {}
  for (const { id } of data) found[id] = (await manage(managed, 'GET', `/api/workspaces/${id}/wallet`)).balance
  return found
}
