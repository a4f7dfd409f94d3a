// The bare Bun proxy, twice: `bare` passes streams through, `bare-rewrite` parses and writes again every event. Their
// JSON work is the same, so the second one runs in streams alone.

import { join } from 'node:path'
import type { Surface } from '../cells.ts'
import type { Contender } from './contender.ts'
import { launch } from './launch.ts'

export const bare = bareContender('bare', 'pass')
export const bareRewrite = bareContender('bare-rewrite', 'rewrite')

function bareContender(name: string, streams: 'pass' | 'rewrite'): Contender {
  return {
    name,
    cells: streams === 'pass' ? 'all' : 'streams',
    byDefault: true,
    async start(setting) {
      const program = join(import.meta.dir, '..', 'bare-proxy.ts')
      const launched = await launch({
        name,
        folder: setting.folder,
        command: [process.execPath, '--no-install', program, setting.upstreamUrl, `--streams=${streams}`],
        // The gateway's launcher sets it too; see bin/tollgate.
        environment: { BUN_CONFIG_MAX_HTTP_REQUESTS: '65000' },
      })
      if ('failed' in launched) return { absent: launched.failed }
      const call = (surface: Surface, provider: Surface) =>
        surface === provider ? { model: 'bench/chat', headers: { authorization: 'Bearer x' } } : undefined
      return { version: `Bun ${Bun.version}`, running: { ...launched, call } }
    },
  }
}
