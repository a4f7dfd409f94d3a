// Tollgate: SQLite; PostgreSQL; two replicas on PostgreSQL, with and without Redis. The limit is a key's spend limit; in the
// variant `wallet` it is a workspace's prepaid balance.

import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { manage } from '../client.js'
import { clocked } from '../gateway.js'
import { nanos } from '../money.js'
import { answers, freePort, Program, startPostgres, startRedis, versionOf } from '../programs.js'
import { prices, upstreamModel } from '../upstream.js'

const besideThis = join(dirname(fileURLToPath(import.meta.url)), '../../bin/tollgate')
const model = 'challenge/m1'

/** @typedef {{ hasPostgres: boolean, hasRedis: boolean, replicas: number, isWallet: boolean, setting: string }} Variant */

/** In a clone of the repository the one beside this program, elsewhere the installed one. */
const usualProgram = existsSync(besideThis) ? besideThis : 'tollgate'

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
 * @param {Variant & { name: string }} variant
 * @param {import('../gateway.js').StartOptions} options
 * @returns {Promise<import('../gateway.js').Gateway>}
 */
export async function startTollgate(variant, { upstream, folder, options, clock }) {
  const program = options.program ?? usualProgram
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
  /** @type {string[]} */
  const urls = []
  /** @type {Program[]} */
  const replicas = []
  for (let index = 0; index < variant.replicas; index++) {
    const port = await freePort()
    urls.push(`http://127.0.0.1:${port}`)
    const command = clocked(clock, [program, 'serve', '--config', join(folder, 'tollgate.yaml')])
    replicas.push(replica({ command, folder: join(folder, `replica-${index}`), port, env }))
    await replicas[index]?.start()
  }
  const [first] = replicas
  const [firstUrl] = urls
  if (!first || !firstUrl) throw new Error('there is no replica')
  const management = new Management(firstUrl, adminToken)
  await management.prepare()
  let next = 0
  return {
    name: variant.name,
    version: versionOf(program, ['--version'], /(\S+)/),
    setting: variant.setting,
    model,
    url: () => `${urls[next++ % urls.length]}/v1/chat/completions`,
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

/** @param {{ command: string[], folder: string, port: number, env: Record<string, string> }} options */
function replica({ command, folder, port, env }) {
  mkdirSync(folder, { recursive: true })
  return new Program({
    command: [...command, '--port', `${port}`, '--data', join(folder, 'data')],
    folder,
    log: 'tollgate',
    env: { ...env, TOLLGATE_DRAIN_SECONDS: '5' },
    ready: async () => await answers(`http://127.0.0.1:${port}/readyz`),
  })
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
