// Busbar, a gateway in Rust: the fastest one with a public benchmark. It bills nothing and stores nothing. It is not in a
// package registry, so build-peers.sh builds it from its public source.

import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Surface } from '../cells.ts'
import { UPSTREAM_MODEL } from '../upstream-replies.ts'
import type { Contender } from './contender.ts'
import { freePort, launch } from './launch.ts'

export const busbar: Contender = {
  name: 'busbar',
  cells: 'all',
  byDefault: true,
  async start(setting) {
    const program = join(setting.peersFolder, 'busbar', 'busbar')
    if (!existsSync(program)) return { absent: `not built (bench/contenders/build-peers.sh ${setting.peersFolder})` }
    const port = await freePort()
    const providersPath = join(setting.folder, 'busbar-providers.yaml')
    const configPath = join(setting.folder, 'busbar.yaml')
    writeFileSync(providersPath, providers(setting.upstreamUrl))
    writeFileSync(configPath, configuration(port, await freePort()))
    const launched = await launch({
      name: 'busbar',
      folder: setting.folder,
      command: [program],
      environment: { BUSBAR_CONFIG: configPath, BUSBAR_PROVIDERS: providersPath, FAKE_KEY: 'x', ADMIN_TOKEN: 'bench' },
      port,
    })
    if ('failed' in launched) return { absent: launched.failed }
    // Not measured on the Responses API.
    const call = (surface: Surface, provider: Surface) =>
      surface === 'responses'
        ? undefined
        : {
            model: `bench-${provider}`,
            headers: {},
            // Its Anthropic surface takes the model from the path.
            ...(surface === 'messages' ? { path: `/bench-${provider}/v1/messages` } : {}),
          }
    return { version: versionOf(program), running: { ...launched, call } }
  },
}

// JSON is YAML.
function providers(upstreamUrl: string): string {
  return JSON.stringify({
    'fake-chat': { protocol: 'openai', base_url: upstreamUrl },
    'fake-messages': { protocol: 'anthropic', base_url: upstreamUrl },
  })
}

/** No client authentication: the cheapest way it can run. */
function configuration(port: number, adminPort: number): string {
  const model = (provider: string) => ({ provider, upstream_model: UPSTREAM_MODEL, max_concurrent: 4096 })
  const key = { api_key: { env: 'FAKE_KEY' } }
  return JSON.stringify({
    listen: `127.0.0.1:${port}`,
    admin_listen: `127.0.0.1:${adminPort}`,
    'identity-providers': { 'admin-tokens': { module: 'admin-tokens', token: { env: 'ADMIN_TOKEN' } } },
    auth: { chain: [], admin_auth: ['admin-tokens'] },
    providers: { 'fake-chat': key, 'fake-messages': key },
    models: { 'bench-chat': model('fake-chat'), 'bench-messages': model('fake-messages') },
  })
}

function versionOf(program: string): string {
  const { stdout } = Bun.spawnSync([program, '--version'])
  return stdout.toString().trim() || 'busbar of unknown version'
}
