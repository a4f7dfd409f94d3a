// Bifrost's HTTP gateway in Go, with its defaults: a request log in SQLite, no billing. Its npm package only downloads the
// program from the vendor's site and its modules are not on every Go proxy, so build-peers.sh builds it from its public source.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Surface } from '../cells.ts'
import { UPSTREAM_MODEL } from '../upstream-replies.ts'
import type { Contender } from './contender.ts'
import { freePort, launch } from './launch.ts'

export const bifrost: Contender = {
  name: 'bifrost',
  cells: 'all',
  byDefault: true,
  async start(setting) {
    const program = join(setting.peersFolder, 'bifrost', 'bifrost-http')
    if (!existsSync(program)) return { absent: `not built (bench/contenders/build-peers.sh ${setting.peersFolder})` }
    const data = join(setting.folder, 'bifrost-data')
    mkdirSync(data, { recursive: true })
    const prices = join(data, 'prices.json')
    writeFileSync(prices, '{}')
    writeFileSync(join(data, 'config.json'), configuration(setting.upstreamUrl, `file://${prices}`))
    const port = await freePort()
    const launched = await launch({
      name: 'bifrost',
      folder: setting.folder,
      command: [program, '-app-dir', data, '-host', '127.0.0.1', '-port', String(port), '-log-level', 'error'],
      port,
    })
    if ('failed' in launched) return { absent: launched.failed }
    // Not measured on the Responses API.
    const call = (surface: Surface, provider: Surface) =>
      surface === 'responses'
        ? undefined
        : {
            model: `${provider === 'chat' ? 'openai' : 'anthropic'}/${UPSTREAM_MODEL}`,
            headers: {},
            // Its Anthropic surface has a separate path.
            ...(surface === 'messages' ? { path: '/anthropic/v1/messages' } : {}),
          }
    return { version: versionOf(program), running: { ...launched, call } }
  },
}

/** Prices, models and servers that it would download come from an empty file. */
function configuration(upstreamUrl: string, emptyFile: string): string {
  const provider = {
    keys: [{ name: 'bench', value: 'x', models: ['*'], weight: 1 }],
    network_config: { base_url: upstreamUrl },
  }
  const pricing = {
    pricing_url: emptyFile,
    model_parameters_url: emptyFile,
    mcp_library_sync_interval: 0,
    live_models_sync_interval: 0,
  }
  return JSON.stringify({ providers: { openai: provider, anthropic: provider }, framework: { pricing } })
}

function versionOf(program: string): string {
  const go = Bun.which('go')
  const output = go ? Bun.spawnSync([go, 'version', '-m', program]).stdout.toString() : ''
  return `bifrost ${/vcs\.revision=(\w{9})/.exec(output)?.[1] ?? 'of unknown version'}`
}
