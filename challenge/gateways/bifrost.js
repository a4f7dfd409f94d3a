// Bifrost's HTTP gateway with its SQLite. The budget of a virtual key is the limit; every call must name one.
//
// It is one program; `--program` says where. What is in the running gateway's memory counts as charged: it writes its
// database every ten seconds.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { manage } from '../client.js'
import { nanos } from '../money.js'
import { answers, freePort, Program } from '../programs.js'
import { perToken, upstreamModel } from '../upstream.js'

/** @type {import('../gateway.js').StartGateway} */
export async function startBifrost({ upstream, folder, options }) {
  const program = options.program ?? 'bifrost-http'
  writeFileSync(join(folder, 'prices.json'), JSON.stringify({ [upstreamModel]: price() }))
  writeFileSync(join(folder, 'empty.json'), '{}')
  writeFileSync(join(folder, 'config.json'), JSON.stringify(configuration(upstream, folder)))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const gateway = new Program({
    command: [program, '-app-dir', folder, '-host', '127.0.0.1', '-port', `${port}`, '-log-level', 'warn'],
    folder,
    log: 'bifrost',
    ready: async () => await answers(`${url}/health`),
  })
  await gateway.start()
  const keys = `${url}/api/governance/virtual-keys`
  return {
    name: 'bifrost',
    version: '',
    setting: 'SQLite, budget of a virtual key, `enforce_auth_on_inference`',
    model: `openai/${upstreamModel}`,
    url: () => `${url}/v1/chat/completions`,
    async createKey(amount) {
      const made = await manage(keys, {
        method: 'POST',
        body: {
          name: `challenge-${Date.now()}`,
          is_active: true,
          provider_configs: [{ provider: 'openai', weight: 1, allowed_models: ['*'], key_ids: ['*'] }],
          budgets: [budget(amount)],
        },
      })
      return { id: made.virtual_key.id, headers: { 'x-bf-vk': made.virtual_key.value } }
    },
    async spent({ id }) {
      const { virtual_key: key } = await manage(`${keys}/${id}?from_memory=true`)
      return key.budgets.reduce(
        (/** @type {bigint} */ sum, /** @type {{ current_usage: number }} */ { current_usage }) =>
          sum + nanos(current_usage),
        0n,
      )
    },
    async limit({ id }, amount) {
      await manage(`${keys}/${id}`, { method: 'PUT', body: { budgets: [budget(amount)] } })
    },
    settleMs: 2_500,
    kill: async () => await gateway.end('SIGKILL'),
    terminate: async () => await gateway.end('SIGTERM'),
    restart: async () => await gateway.start(),
    stop: async () => await gateway.end('SIGTERM'),
  }
}

/** @param {string} amount */
function budget(amount) {
  return { max_limit: Number(amount), reset_duration: '1M' }
}

function price() {
  return {
    provider: 'openai',
    mode: 'chat',
    input_cost_per_token: Number(perToken.input),
    output_cost_per_token: Number(perToken.output),
  }
}

/** Prices, models and servers that it would download come from files. @param {string} upstream @param {string} folder */
function configuration(upstream, folder) {
  return {
    client: { enforce_auth_on_inference: true, disable_content_logging: true },
    providers: {
      openai: {
        keys: [{ name: 'challenge', value: 'none', models: ['*'], weight: 1 }],
        network_config: { base_url: upstream },
      },
    },
    framework: {
      pricing: {
        pricing_url: `file://${join(folder, 'prices.json')}`,
        model_parameters_url: `file://${join(folder, 'empty.json')}`,
        mcp_library_sync_interval: 0,
        live_models_sync_interval: 0,
      },
    },
    config_store: { enabled: true, type: 'sqlite', config: { path: join(folder, 'config.db') } },
    logs_store: { enabled: true, type: 'sqlite', config: { path: join(folder, 'logs.db') } },
  }
}
