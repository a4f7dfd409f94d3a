// Portkey's open-source gateway from npm, on Node, with its defaults. It is installed by name into a folder outside this
// repository that is kept between runs, and started as its own command would be.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Contender } from './contender.ts'
import { freePort, launch } from './launch.ts'

const PACKAGE = '@portkey-ai/gateway'
// With any newer one, which its version range lets npm choose, every stream fails with "TypeError: immutable":
// https://github.com/Portkey-AI/gateway/issues/1389 (open since 2025-10, tried with Portkey 1.15.2 on Node 20).
const SERVER_PACKAGE = '@hono/node-server'
const SERVER_VERSION = '1.14.1'
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
  const folder = join(tmpdir(), 'tollgate-bench-peers', 'portkey')
  const modules = join(folder, 'node_modules')
  if (!versionOf(modules, PACKAGE) || versionOf(modules, SERVER_PACKAGE) !== SERVER_VERSION) {
    const npm = Bun.which('npm')
    if (!npm) return { failed: 'needs npm' }
    // A lock file of an earlier install would win over the override.
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    const overrides = { [SERVER_PACKAGE]: SERVER_VERSION }
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, overrides }))
    const { success, stderr } = Bun.spawnSync(
      [npm, 'install', '--ignore-scripts', '--no-audit', '--no-fund', PACKAGE],
      {
        cwd: folder,
        stdin: 'ignore',
        stdout: 'ignore',
        stderr: 'pipe',
        timeout: INSTALL_MS_MAX,
      },
    )
    if (!success) return { failed: `could not be installed: ${stderr.toString().trim().split('\n')[0] ?? ''}` }
  }
  const version = versionOf(modules, PACKAGE)
  return version ? { folder: join(modules, PACKAGE), version } : { failed: 'could not be installed' }
}

function versionOf(modules: string, name: string): string | undefined {
  const path = join(modules, name, 'package.json')
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version : undefined
}
