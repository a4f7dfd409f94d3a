import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mayMount, mountSmallDisk, type SmallDisk } from './parts/crash-disk.ts'
import { startCrashGateway } from './parts/crash-gateway.ts'
import { forEachEngine } from './parts/engines.ts'

// A first start on a disk without room; a disk that fills up under a running gateway is in crash/outages.test.ts.

/** Leaves this much room. */
function fillExcept(disk: SmallDisk, bytes: number): void {
  const spare = join(disk.path, 'spare')
  writeFileSync(spare, new Uint8Array(bytes))
  disk.fill()
  rmSync(spare)
}

forEachEngine((engine) => {
  // Each is refused at another step: the lock, the database, its log, its migrations. PostgreSQL has its data elsewhere.
  const rooms = engine.name === 'sqlite' ? [0, 4, 24, 80] : [0]
  test.skipIf(!mayMount()).each(rooms)(
    'a start with %d KiB left on the disk says that the disk is full, leaves no drafts, and succeeds when there is room',
    async (kibibytes) => {
      using disk = mountSmallDisk()
      using place = await engine.createPlace()
      if (!disk) throw new Error('no file system could be mounted')
      const dataFolder = join(disk.path, 'data')
      const configPath = join(place.dataFolder, 'tollgate.yaml')
      mkdirSync(dataFolder, { mode: 0o700 })
      writeFileSync(configPath, '')
      // The runtime writes files to the home folder.
      const start = () =>
        startCrashGateway({ dataFolder, databaseUrl: place.url, configPath }, { env: { HOME: place.dataFolder } })
      fillExcept(disk, kibibytes * 1024)
      await expect(start()).rejects.toThrow(
        `tollgate cannot start: The disk that holds ${dataFolder} is full. Free some space, or set TOLLGATE_DATA to a folder on another disk. Then start Tollgate again.`,
      )
      expect(readdirSync(dataFolder).filter((name) => name.endsWith('.draft'))).toEqual([])
      disk.empty()
      const gateway = await start()
      expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200)
      await gateway.kill()
    },
  )
})
