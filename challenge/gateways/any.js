// A gateway that somebody has set up: its address, keys with a limit of one dollar each, and commands for the rest. The file
// README.md says how to configure it.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { nanos } from '../money.js'

/**
 * @param {import('../gateway.js').StartOptions} options
 * @returns {Promise<import('../gateway.js').Gateway>}
 */
export async function startAny({ options }) {
  const urls = (options['base-url'] ?? '').split(',').filter((url) => url !== '')
  if (urls.length === 0) throw new Error('--base-url is required: the address of the gateway, http://127.0.0.1:8080')
  const spent = required(options, 'spent', 'a command that prints what the key in $KEY has spent, in dollars')
  const keys = readFileSync(required(options, 'keys', 'a file with one key in each line'), 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
  const header = options.header ?? 'authorization: Bearer $KEY'
  let next = 0
  return {
    name: options.name ?? 'gateway',
    version: '',
    setting: options.setting ?? '',
    model: options.model ?? 'm1',
    url: () => `${urls[next++ % urls.length]}${options.path ?? '/v1/chat/completions'}`,
    async createKey(amount, window = 'month') {
      if (amount !== '1.00' || window !== 'month') throw new Error('this attack needs keys with another limit')
      const [secret, id] = keys.shift()?.trim().split(/\s+/) ?? []
      if (secret === undefined)
        throw new Error(`there are no keys left in ${options.keys}: each run of an attack needs one`)
      const [name = '', value = ''] = header.split(/:\s*(.*)/)
      return { id: id ?? secret, headers: { [name]: value.replace('$KEY', secret) } }
    },
    spent: async ({ id }) => nanos(run(spent, { KEY: id })),
    settleMs: Number(options['settle-ms'] ?? 5_000),
    stop: async () => {},
    ...(options.kill !== undefined &&
      options.start !== undefined && {
        kill: async () => void run(options.kill ?? '', {}),
        async restart() {
          run(options.start ?? '', {})
          await sleep(2_000)
        },
      }),
    ...(options['idempotency-keys'] !== undefined && { isOneCallPerKey: true }),
  }
}

/** @param {Record<string, string | undefined>} options @param {string} name @param {string} meaning */
function required(options, name, meaning) {
  const value = options[name]
  if (value === undefined) throw new Error(`--${name} is required: ${meaning}`)
  return value
}

/** @param {string} command @param {Record<string, string>} env */
function run(command, env) {
  const done = spawnSync('sh', ['-c', command], { env: { ...process.env, ...env }, timeout: 60_000 })
  if (done.status !== 0) throw new Error(`${command}: ${done.stderr.toString().trim() || `exit code ${done.status}`}`)
  return done.stdout.toString().trim()
}
