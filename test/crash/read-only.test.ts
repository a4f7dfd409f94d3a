import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { startCrashGateway } from '../parts/crash-gateway.ts'
import { type Injection, injectWriteError } from '../parts/crash-inject.ts'
import { startCrashUpstream } from '../parts/crash-upstream.ts'
import { allAsks, expectSoundBooks, loseStore, untilServed } from './outage.ts'
import { createSite } from './run-cycles.ts'

// Files that are open stay open when their file system becomes read-only; only the writes fail. Permissions would not
// show it: they are asked for when a file is opened, and never of root.

for (const [what, error] of [
  ['a database that became read-only', 'EROFS'],
  ['a disk that fails to write', 'EIO'],
] as const) {
  test.skipIf(Bun.which('strace') === null)(
    `${what} refuses calls with 503 and asks no provider; what ran is completed and charged when it is over (strace)`,
    async () => {
      const crashUpstream = startCrashUpstream()
      const site = await createSite('sqlite', crashUpstream)
      const gateway = await startCrashGateway(site)
      try {
        let injection: Injection | undefined
        const outage = {
          async begin() {
            injection = await injectWriteError([gateway.pid], join(site.dataFolder, 'tollgate.db-wal'), error)
          },
          end: async () => await injection?.end(),
        }
        const scene = { gateway, crashUpstream, data: site, outage }
        const { running, probes } = await loseStore(scene)
        await outage.end()
        const receipts = await Promise.all(running)
        expect(receipts.map(({ end }) => end)).toEqual(allAsks.map(() => 'complete'))
        const all = [...receipts, ...(await Promise.all(probes)), ...(await untilServed(gateway))]
        expect(crashUpstream.upstream.calls.length).toBe(all.filter(({ end }) => end !== 'refused').length)
        await expectSoundBooks(scene, all)
        expect(await gateway.stop()).toBe(0)
      } finally {
        await gateway.kill()
        crashUpstream.upstream.stop()
        rmSync(site.dataFolder, { recursive: true, force: true })
      }
    },
  )
}
