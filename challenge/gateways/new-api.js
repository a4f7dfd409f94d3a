// new-api with its SQLite. The quota of a token is the limit. Before a call it holds the prompt and `max_tokens` at the price
// of input; its setting `PreConsumedQuota` raises that. It is set to the tokens of a usual call here, as an operator can who
// knows what his calls cost.
//
// It is one program; `--program` says where.

import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { manage } from '../client.js'
import { nanos } from '../money.js'
import { answers, freePort, Program, versionOf } from '../programs.js'
import { prices, upstreamModel, usualTokens } from '../upstream.js'

/** Its unit of money; $2 per million tokens is the ratio 1. */
const quotaPerDollar = 500_000

/** @type {import('../gateway.js').StartGateway} */
export async function startNewApi({ upstream, folder, options }) {
  const program = options.program ?? 'new-api'
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const logs = join(folder, 'logs')
  mkdirSync(logs)
  const gateway = new Program({
    command: [program, '--port', `${port}`, '--log-dir', logs],
    folder,
    log: 'new-api',
    env: {
      SQLITE_PATH: `${join(folder, 'new-api.db')}?_busy_timeout=30000`,
      SESSION_SECRET: randomBytes(24).toString('hex'),
      CRITICAL_RATE_LIMIT_ENABLE: 'false',
      GLOBAL_API_RATE_LIMIT_ENABLE: 'false',
    },
    ready: async () => await answers(`${url}/api/status`),
  })
  await gateway.start()
  const management = new Management(url)
  await management.prepare(upstream)
  return {
    name: 'new-api',
    version: versionOf(program, ['--version'], /(v?\d+\.\d+\.\d+\S*)/),
    setting: `SQLite, quota of a token, \`PreConsumedQuota: ${heldTokens}\``,
    model: upstreamModel,
    url: () => `${url}/v1/chat/completions`,
    createKey: async (amount) => await management.createToken(amount),
    spent: async (key) => await management.spent(key),
    settleMs: 2_500,
    kill: async () => await gateway.end('SIGKILL'),
    terminate: async () => await gateway.end('SIGTERM'),
    restart: async () => await gateway.start(),
    stop: async () => await gateway.end('SIGTERM'),
  }
}

/** What a usual call costs, in tokens at the price of input. */
const heldTokens = usualTokens.input + usualTokens.output * (Number(prices.output) / Number(prices.input))

class Management {
  /** @type {Record<string, string>} */
  #headers = {}
  /** What each token may spend, in its unit. @type {Map<string, number>} */
  #quotas = new Map()

  /** @param {string} url */
  constructor(url) {
    this.url = url
  }

  /** @param {string} upstream */
  async prepare(upstream) {
    const account = { username: 'root', password: randomBytes(8).toString('hex') }
    await this.#call('POST', '/api/setup', {
      ...account,
      confirmPassword: account.password,
      SelfUseModeEnabled: false,
      DemoSiteEnabled: false,
    })
    const { access_token: token } = await this.#call('POST', '/api/user/login', account)
    this.#headers = { authorization: `Bearer ${token}`, 'new-api-user': '1' }
    const ratio = { input: Number(prices.input) / 2, output: Number(prices.output) / Number(prices.input) }
    await this.#option('ModelRatio', JSON.stringify({ [upstreamModel]: ratio.input }))
    await this.#option('CompletionRatio', JSON.stringify({ [upstreamModel]: ratio.output }))
    await this.#option('PreConsumedQuota', `${heldTokens}`)
    // It answers 503 on a busy machine, which is not what is measured.
    await this.#option('performance_setting.monitor_enabled', 'false')
    const channel = { type: 1, name: 'challenge', key: 'none', base_url: upstream, models: upstreamModel }
    const rest = { group: 'default', groups: ['default'], status: 1, auto_ban: 0 }
    await this.#call('POST', '/api/channel/', { mode: 'single', channel: { ...channel, ...rest } })
    // It reads its channels from time to time.
    await sleep(1_500)
  }

  /** @param {string} amount */
  async createToken(amount) {
    // What one attack spent must not stop the next: the balance of the account is not the limit here.
    const ample = { id: 1, action: 'add_quota', mode: 'override', value: 1_000 * quotaPerDollar }
    await this.#call('POST', '/api/user/manage', ample)
    const name = `challenge-${Date.now()}`
    const quota = Math.round(Number(amount) * quotaPerDollar)
    await this.#call('POST', '/api/token/', {
      name,
      remain_quota: quota,
      unlimited_quota: false,
      expired_time: -1,
    })
    const list = await this.#call('GET', '/api/token/?p=1&size=100')
    const tokens = /** @type {{ id: number, name: string }[]} */ (list.items ?? list)
    const id = `${tokens.find((token) => token.name === name)?.id}`
    const { key } = await this.#call('POST', `/api/token/${id}/key`)
    this.#quotas.set(id, quota)
    return { id, headers: { authorization: `Bearer sk-${key.replace(/^sk-/, '')}` } }
  }

  /** @param {import('../gateway.js').Key} key */
  async spent({ id }) {
    const { remain_quota: left } = await this.#call('GET', `/api/token/${id}`)
    return nanos(`${((this.#quotas.get(id) ?? 0) - left) / quotaPerDollar}`)
  }

  /** @param {string} key @param {string} value */
  async #option(key, value) {
    await this.#call('PUT', '/api/option/', { key, value })
  }

  /** @param {string} method @param {string} path @param {unknown} [body] */
  async #call(method, path, body) {
    const answer = await manage(this.url + path, { method, headers: this.#headers, body })
    if (!answer.success) throw new Error(`${method} ${path}: ${JSON.stringify(answer).slice(0, 500)}`)
    return answer.data
  }
}
