// Portkey's open-source gateway from npm, on Node, with its defaults. It is installed by name into a folder outside this
// repository that is kept between runs, and started as its own command would be.

import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Contender } from './contender.ts'
import { freePort, launch } from './launch.ts'

const PACKAGE = '@portkey-ai/gateway'
const INSTALL_MS_MAX = 180_000

export const portkey: Contender = {
  name: 'portkey',
  cells: 'all',
  async start(setting) {
    if (!setting.peers) return { absent: 'left out by --no-peers' }
    const node = Bun.which('node')
    if (!node) return { absent: 'needs node' }
    const installed = install()
    if ('failed' in installed) return { absent: installed.failed }
    const port = await freePort()
    const launched = await launch({
      name: 'portkey',
      folder: setting.folder,
      command: [node, join(installed.folder, 'build', 'start-server.js'), `--port=${port}`, '--headless'],
      environment: { NODE_ENV: 'production' },
      port,
    })
    if ('failed' in launched) return { absent: launched.failed }
    const call = (surface: 'chat' | 'messages') => ({
      model: 'bench/chat',
      headers: {
        authorization: 'Bearer x',
        'x-portkey-provider': surface === 'chat' ? 'openai' : 'anthropic',
        'x-portkey-custom-host': `${setting.upstreamUrl}/v1`,
      },
    })
    return { version: `${PACKAGE} ${installed.version}`, running: { ...launched, call } }
  },
}

function install(): { folder: string; version: string } | { failed: string } {
  const peers = join(tmpdir(), 'tollgate-bench-peers')
  const folder = join(peers, 'node_modules', PACKAGE)
  if (!existsSync(join(folder, 'build', 'start-server.js'))) {
    const npm = Bun.which('npm')
    if (!npm) return { failed: 'needs npm' }
    mkdirSync(peers, { recursive: true })
    const { success, stderr } = Bun.spawnSync(
      [npm, 'install', '--prefix', peers, '--ignore-scripts', '--no-audit', '--no-fund', PACKAGE],
      { cwd: peers, stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', timeout: INSTALL_MS_MAX },
    )
    if (!success) return { failed: `could not be installed: ${stderr.toString().trim().split('\n')[0] ?? ''}` }
  }
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
  return { folder, version: manifest.version }
}
