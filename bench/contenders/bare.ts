// The bare Bun proxy, five times. `bare` passes streams through; `bare-loop` hands them on in JavaScript, unread, and
// `bare-rewrite` parses and writes again every event: these two differ in streams alone. `bare-durable` writes what it
// served to the disk before the answer ends. These three are floors: what each promise costs before a gateway begins.
// `bare-journal` writes it to a journal first and to the database later: a design that we do not use.

import { join } from 'node:path'
import type { Surface } from '../cells.ts'
import type { Contender } from './contender.ts'
import { launch } from './launch.ts'

interface Variation {
  readonly streams: 'pass' | 'loop' | 'rewrite'
  readonly durability?: 'durable' | 'journal'
}

export const bare = bareContender('bare', { streams: 'pass' })
export const bareLoop = bareContender('bare-loop', { streams: 'loop' })
export const bareRewrite = bareContender('bare-rewrite', { streams: 'rewrite' })
export const bareDurable = bareContender('bare-durable', { streams: 'pass', durability: 'durable' })
export const bareJournal = bareContender('bare-journal', { streams: 'pass', durability: 'journal' })

function bareContender(name: string, { streams, durability }: Variation): Contender {
  return {
    name,
    cells: streams === 'pass' ? 'all' : 'streams',
    byDefault: durability !== 'journal',
    async start(setting) {
      const program = join(import.meta.dir, '..', 'bare-proxy.ts')
      const options = [`--streams=${streams}`, ...(durability ? [`--${durability}=${setting.folder}`] : [])]
      const launched = await launch({
        name,
        folder: setting.folder,
        command: [process.execPath, '--no-install', program, setting.upstreamUrl, ...options],
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
