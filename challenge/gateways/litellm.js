// LiteLLM's proxy with its PostgreSQL. A key's `max_budget` is the limit. The settings are those that its documentation of
// budgets offers for a strict one: spending is written every second, and a call whose budget cannot be read is refused.
//
// Install it as its documentation says: `pip install 'litellm[proxy]'`. It brings Prisma, which creates the tables.

import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { manage } from '../client.js'
import { nanos } from '../money.js'
import { answers, freePort, Program, startPostgres, versionOf } from '../programs.js'
import { perToken, upstreamModel } from '../upstream.js'

/** @type {import('../gateway.js').StartGateway} */
export async function startLitellm({ upstream, folder, options }) {
  const program = options.program ?? 'litellm'
  const database = await startPostgres(folder)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const masterKey = `sk-${randomBytes(24).toString('hex')}`
  const config = join(folder, 'litellm.yaml')
  writeFileSync(config, configuration(upstream, { masterKey, databaseUrl: database.url }))
  const gateway = new Program({
    command: [program, '--config', config, '--host', '127.0.0.1', '--port', `${port}`, '--num_workers', '1'],
    folder,
    log: 'litellm',
    env: {
      DATABASE_URL: database.url,
      LITELLM_SALT_KEY: masterKey,
      // Its own copy of the price list; otherwise it asks the network at every start.
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      LITELLM_LOG: 'ERROR',
    },
    ready: async () => await answers(`${url}/health/readiness`),
  })
  await gateway.start()
  const headers = { authorization: `Bearer ${masterKey}` }
  return {
    name: 'litellm',
    version: versionOf(program, ['--version'], /(\d+\.\d+\.\d+\S*)/),
    setting: 'PostgreSQL, `max_budget` of a key, `fail_closed_budget_enforcement`, `proxy_batch_write_at: 1`',
    model: upstreamModel,
    url: () => `${url}/v1/chat/completions`,
    async createKey(amount) {
      const body = { max_budget: Number(amount), budget_duration: '30d', models: [upstreamModel] }
      const { key } = await manage(`${url}/key/generate`, { method: 'POST', headers, body })
      return { id: key, headers: { authorization: `Bearer ${key}` } }
    },
    spent: async ({ id }) => nanos((await manage(`${url}/key/info?key=${id}`, { headers })).info.spend),
    async limit({ id }, amount) {
      await manage(`${url}/key/update`, { method: 'POST', headers, body: { key: id, max_budget: Number(amount) } })
    },
    settleMs: 7_500,
    kill: async () => await gateway.end('SIGKILL'),
    terminate: async () => await gateway.end('SIGTERM'),
    restart: async () => await gateway.start(),
    database,
    async stop() {
      await gateway.end('SIGTERM')
      await database.stop()
    },
  }
}

/** @param {string} upstream @param {{ masterKey: string, databaseUrl: string }} secrets */
function configuration(upstream, { masterKey, databaseUrl }) {
  return `model_list:
  - model_name: ${upstreamModel}
    litellm_params:
      model: openai/${upstreamModel}
      api_base: "${upstream}/v1"
      api_key: none
      input_cost_per_token: ${perToken.input}
      output_cost_per_token: ${perToken.output}
    model_info: { max_input_tokens: 128000, max_output_tokens: 4096 }
general_settings:
  master_key: ${masterKey}
  database_url: "${databaseUrl}"
  proxy_batch_write_at: 1
  fail_closed_budget_enforcement: true
`
}
