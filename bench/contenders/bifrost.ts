// Bifrost's HTTP gateway, built from its Go module by name in the peers' folder and started with its file configuration.
// Its npm package is only a script that downloads the program from the vendor's site, so it is not used.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Surface } from '../cells.ts'
import { UPSTREAM_MODEL } from '../upstream-replies.ts'
import type { Contender } from './contender.ts'
import { runInstaller } from './install.ts'
import { freePort, launch } from './launch.ts'

const MODULE = 'github.com/maximhq/bifrost/transports/bifrost-http'

export const bifrost: Contender = {
  name: 'bifrost',
  cells: 'all',
  byDefault: true,
  async start(setting) {
    const folder = join(setting.peersFolder, 'bifrost')
    const program = join(folder, 'bin', 'bifrost-http')
    if (!existsSync(program)) {
      if (!setting.installPeers) return { absent: 'not installed (--install-peers does it)' }
      const failed = install(folder)
      if (failed) return { absent: failed }
    }
    const data = join(setting.folder, 'bifrost-data')
    mkdirSync(data, { recursive: true })
    writeFileSync(join(data, 'config.json'), configuration(setting.upstreamUrl))
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

function configuration(upstreamUrl: string): string {
  const provider = {
    keys: [{ name: 'bench', value: 'x', models: ['*'], weight: 1 }],
    network_config: { base_url: upstreamUrl },
  }
  return JSON.stringify({ providers: { openai: provider, anthropic: provider }, config_store: { enabled: false } })
}

function install(folder: string): string | undefined {
  const go = Bun.which('go')
  if (!go) return 'needs go'
  mkdirSync(folder, { recursive: true })
  return runInstaller([go, 'install', `${MODULE}@latest`], folder, {
    GOBIN: join(folder, 'bin'),
    GOPATH: join(folder, 'go'),
    GOCACHE: join(folder, 'cache'),
    GOFLAGS: '-modcacherw',
    GOTOOLCHAIN: 'auto',
  })
}

function versionOf(program: string): string {
  const go = Bun.which('go')
  const output = go ? Bun.spawnSync([go, 'version', '-m', program]).stdout.toString() : ''
  return `bifrost ${/mod\s+\S+\s+(\S+)/.exec(output)?.[1] ?? 'of unknown version'}`
}
