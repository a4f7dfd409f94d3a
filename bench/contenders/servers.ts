// The HTTP server of the gateway and that of Bun, each with the same short answer and no upstream: whether ours is still
// worth keeping (docs/decisions/0083) is asked again at each upgrade of Bun. In streams they answer with JSON, so only
// cells without one compare them.

import { join } from 'node:path'
import type { Surface } from '../cells.ts'
import type { Contender } from './contender.ts'
import { launch } from './launch.ts'

export const ownServer = serverContender('own-server', 'own')
export const bunServe = serverContender('bun-serve', 'bun')

function serverContender(name: string, server: 'own' | 'bun'): Contender {
  return {
    name,
    cells: 'all',
    byDefault: false,
    async start(setting) {
      const program = join(import.meta.dir, '..', 'answer-server.ts')
      const launched = await launch({
        name,
        folder: setting.folder,
        command: [process.execPath, '--no-install', program, `--server=${server}`],
      })
      if ('failed' in launched) return { absent: launched.failed }
      const call = (surface: Surface, provider: Surface) =>
        surface === 'chat' && provider === 'chat'
          ? { model: 'bench/chat', headers: { authorization: 'Bearer x' } }
          : undefined
      return { version: `Bun ${Bun.version}`, running: { ...launched, call } }
    },
  }
}
