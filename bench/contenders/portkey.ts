// Portkey's open-source gateway from npm, on Node, with its defaults: installed by name into the peers' folder and started
// as its own command would be.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Surface } from '../cells.ts'
import type { Contender } from './contender.ts'
import { runInstaller } from './install.ts'
import { freePort, launch } from './launch.ts'

const PACKAGE = '@portkey-ai/gateway'
// With any newer one, which its version range lets npm choose, every stream fails with "TypeError: immutable":
// https://github.com/Portkey-AI/gateway/issues/1389 (open since 2025-10, tried with Portkey 1.15.2 on Node 20).
const SERVER_PACKAGE = '@hono/node-server'
const SERVER_VERSION = '1.14.1'

export const portkey: Contender = {
  name: 'portkey',
  cells: 'all',
  byDefault: true,
  async start(setting) {
    const node = Bun.which('node')
    if (!node) return { absent: 'needs node' }
    const folder = join(setting.peersFolder, 'portkey')
    const modules = join(folder, 'node_modules')
    if (!versionOf(modules, PACKAGE) || versionOf(modules, SERVER_PACKAGE) !== SERVER_VERSION) {
      if (!setting.installPeers) return { absent: 'not installed (--install-peers does it)' }
      const failed = install(folder)
      if (failed) return { absent: failed }
    }
    const port = await freePort()
    const launched = await launch({
      name: 'portkey',
      folder: setting.folder,
      command: [node, join(modules, PACKAGE, 'build', 'start-server.js'), `--port=${port}`, '--headless'],
      environment: { NODE_ENV: 'production' },
      port,
    })
    if ('failed' in launched) return { absent: launched.failed }
    // Not measured on the Responses API.
    const call = (surface: Surface, provider: Surface) =>
      surface === 'responses'
        ? undefined
        : {
            model: 'bench-large',
            headers: {
              authorization: 'Bearer x',
              'x-portkey-provider': provider === 'chat' ? 'openai' : 'anthropic',
              'x-portkey-custom-host': `${setting.upstreamUrl}/v1`,
            },
          }
    return { version: `${PACKAGE} ${versionOf(modules, PACKAGE)}`, running: { ...launched, call } }
  },
}

function install(folder: string): string | undefined {
  const npm = Bun.which('npm')
  if (!npm) return 'needs npm'
  // A lock file of an earlier install would win over the override.
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const overrides = { [SERVER_PACKAGE]: SERVER_VERSION }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, overrides }))
  return runInstaller([npm, 'install', '--ignore-scripts', '--no-audit', '--no-fund', PACKAGE], folder)
}

function versionOf(modules: string, name: string): string | undefined {
  const path = join(modules, name, 'package.json')
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version : undefined
}
