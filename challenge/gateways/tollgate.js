// Tollgate: SQLite; PostgreSQL; two replicas on PostgreSQL, with and without Redis. The limit is a key's spend limit; in the
// variant `wallet` it is a workspace's prepaid balance.

import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { manage } from '../client.js'
import { clocked } from '../gateway.js'
import { nanos } from '../money.js'
import { answers, end, freePort, launch, startPostgres, startRedis, waitFor } from '../programs.js'
import { prices, upstreamModel } from '../upstream.js'

const besideThis = join(dirname(fileURLToPath(import.meta.url)), '../../bin/tollgate')
const model = 'challenge/m1'

/** @typedef {{ hasPostgres: boolean, hasRedis: boolean, replicas: number, isWallet: boolean, setting: string }} Variant */

const base = { hasPostgres: false, hasRedis: false, replicas: 1, isWallet: false }

/** @type {Record<string, Variant>} */
export const variants = {
  tollgate: { ...base, setting: 'SQLite, spend limit of a key' },
  'tollgate-wallet': { ...base, isWallet: true, setting: 'SQLite, prepaid balance' },
  'tollgate-postgres': { ...base, hasPostgres: true, setting: 'PostgreSQL, spend limit of a key' },
  'tollgate-replicas': { ...base, hasPostgres: true, replicas: 2, setting: 'two replicas on PostgreSQL' },
  'tollgate-redis': {
    ...base,
    hasPostgres: true,
    hasRedis: true,
    replicas: 2,
    setting: 'two replicas on PostgreSQL and Redis',
  },
}

/**
 * @param {string} name
 * @param {import('../gateway.js').StartOptions} options
 * @returns {Promise<import('../gateway.js').Gateway>}
 */
export async function startTollgate(name, { upstream, folder, options, clock }) {
  const variant = variants[name]
  if (!variant) throw new Error(`no variant ${name}`)
  const program = options.program ?? besideThis
  const database = variant.hasPostgres ? await startPostgres(folder) : undefined
  const cache = variant.hasRedis ? await startRedis(folder) : undefined
  const adminToken = randomBytes(32).toString('base64')
  const env = {
    TOLLGATE_SECRET: randomBytes(32).toString('base64'),
    TOLLGATE_ADMIN_TOKEN: adminToken,
    ...(database && { DATABASE_URL: database.url }),
    ...(cache && { REDIS_URL: cache.url }),
  }
  writeFileSync(join(folder, 'tollgate.yaml'), configuration(upstream))
  /** @type {Replica[]} */
  const replicas = []
  for (let index = 0; index < variant.replicas; index++) {
    const command = clocked(clock, [program, 'serve', '--config', join(folder, 'tollgate.yaml')])
    const replica = new Replica({ command, folder: join(folder, `replica-${index}`), port: await freePort(), env })
    await replica.start()
    replicas.push(replica)
  }
  const [first] = replicas
  if (!first) throw new Error('there is no replica')
  const management = new Management(first.url, adminToken)
  await management.prepare()
  let next = 0
  return {
    name,
    version: spawnSync(program, ['--version']).stdout.toString().trim(),
    setting: variant.setting,
    model,
    url: () => `${replicas[next++ % replicas.length]?.url}/v1/chat/completions`,
    createKey: async (amount, window = 'month') =>
      await (variant.isWallet ? management.createWallet(amount) : management.createKey(amount, window)),
    spent: async (key) => await (variant.isWallet ? management.walletSpent(key) : management.keySpent(key)),
    settleMs: 2_500,
    isOneCallPerKey: true,
    kill: async () => await first.end('SIGKILL'),
    terminate: async () => await first.end('SIGTERM'),
    restart: async () => await first.start(),
    ...(!variant.isWallet && { limit: async (key, amount) => await management.limit(key, amount) }),
    async price(changed) {
      // The gateway watches its file.
      writeFileSync(join(folder, 'tollgate.yaml'), configuration(upstream, changed))
      await sleep(3_000)
    },
    ...(database && { database }),
    ...(cache && { cache }),
    async stop() {
      await Promise.all(replicas.map((replica) => replica.end('SIGTERM')))
      await cache?.stop()
      await database?.stop()
    },
  }
}

/** @param {string} upstream @param {{ input: string, output: string }} price */
function configuration(upstream, price = prices) {
  return `providers:
  - { id: challenge, dialect: openai-chat, base_url: "${upstream}/v1", api_key: "none" }
models:
  - id: ${model}
    price: { input: "${price.input}", output: "${price.output}" }
    max_output_tokens: 4096
    routes:
      - { provider: challenge, model: ${upstreamModel} }
`
}

class Replica {
  /** @type {import('../programs.js').ChildProcess | undefined} */
  #child

  /** @param {{ command: string[], folder: string, port: number, env: Record<string, string> }} options */
  constructor(options) {
    this.options = options
    this.url = `http://127.0.0.1:${options.port}`
    this.data = join(options.folder, 'data')
    mkdirSync(options.folder, { recursive: true })
  }

  async start() {
    const { command, folder, port, env } = this.options
    const full = [...command, '--port', `${port}`, '--data', this.data]
    this.#child = launch(full, { folder, log: 'tollgate', env: { ...env, TOLLGATE_DRAIN_SECONDS: '5' } })
    await waitFor(`Tollgate on port ${port}`, async () => await answers(`${this.url}/readyz`))
  }

  /** @param {NodeJS.Signals} name */
  async end(name) {
    if (this.#child) await end(this.#child, name)
  }
}

class Management {
  #workspace = ''
  #project = ''
  /** The limit of each wallet. @type {Map<string, bigint>} */
  #wallets = new Map()
  /** @type {Set<string>} */
  #daily = new Set()

  /** @param {string} url @param {string} token */
  constructor(url, token) {
    this.url = url
    this.headers = { authorization: `Bearer ${token}` }
  }

  async prepare() {
    this.#workspace = (await this.#get('/api/workspaces')).data[0].id
    this.#project = (await this.#get(`/api/workspaces/${this.#workspace}/projects`)).data[0].id
    await this.#post(`/api/workspaces/${this.#workspace}/topups`, { amount: '10000.00', reference: 'challenge' })
  }

  /** @param {string} amount @param {'day' | 'month'} window */
  async createKey(amount, window) {
    const limits = { [`spend_per_${window}`]: amount }
    const key = keyOf(await this.#post(`/api/projects/${this.#project}/keys`, { name: uniqueName(), limits }))
    if (window === 'day') this.#daily.add(key.id)
    return key
  }

  /** @param {string} amount */
  async createWallet(amount) {
    const workspace = await this.#post('/api/workspaces', { name: uniqueName() })
    await this.#post(`/api/workspaces/${workspace.id}/topups`, { amount, reference: 'challenge' })
    const project = await this.#post(`/api/workspaces/${workspace.id}/projects`, { name: 'challenge' })
    const key = keyOf(await this.#post(`/api/projects/${project.id}/keys`, { name: 'challenge' }))
    this.#wallets.set(workspace.id, nanos(amount))
    return { ...key, id: workspace.id }
  }

  /** @param {import('../gateway.js').Key} key */
  async keySpent({ id }) {
    // The limit of a day forgets the day before.
    if (this.#daily.has(id)) return nanos((await this.#get(`/api/usage/series?key_id=${id}`)).total.cost)
    return nanos((await this.#get(`/api/keys/${id}`)).spend[0].spent)
  }

  /** @param {import('../gateway.js').Key} key */
  async walletSpent({ id }) {
    const { balance } = await this.#get(`/api/workspaces/${id}/wallet`)
    return (this.#wallets.get(id) ?? 0n) - nanos(balance)
  }

  /** @param {import('../gateway.js').Key} key @param {string} amount */
  async limit({ id }, amount) {
    await this.#send('PUT', `/api/keys/${id}/limits`, { spend_per_month: amount })
  }

  /** @param {string} path */
  async #get(path) {
    return await manage(this.url + path, { headers: this.headers })
  }

  /** @param {string} path @param {unknown} body */
  async #post(path, body) {
    return await this.#send('POST', path, body)
  }

  /** @param {string} method @param {string} path @param {unknown} body */
  async #send(method, path, body) {
    return await manage(this.url + path, { method, headers: this.headers, body })
  }
}

/** @param {{ id: string, secret: string }} made */
function keyOf({ id, secret }) {
  return { id, headers: { authorization: `Bearer ${secret}` } }
}

let names = 0
function uniqueName() {
  return `challenge-${++names}-${Math.random().toString(36).slice(2, 8)}`
}
