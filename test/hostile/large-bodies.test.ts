// Large bodies that do not end, from clients with a key.

import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startCrashGateway } from '../parts/crash-gateway.ts'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { connect, type RawConnection } from '../parts/raw-client.ts'
import { allSurfaces, requestBytes } from '../parts/surfaces.ts'
import { mebibytesOf } from './slow-clients.ts'

const bodiesMebibytes = 64
const bodyBytes = 20_000_000
/** 60 MB; a fourth would be 80 MB. */
const thatFit = 3
const clients = 30
/** Follows a small body of each surface. */
const unfinished = Buffer.alloc(bodyBytes - 10_000, ' ')
/** What a busy gateway has beside them: garbage, of what it copied and of what it refused. All bodies together are 600 MB. */
const growthMax = 300

test('R6: unfinished bodies hold no more memory together than they may, and the others are told to retry', async () => {
  using folder = createThrowAwayFolder()
  const dataFolder = join(folder.path, 'data')
  const configPath = join(folder.path, 'tollgate.yaml')
  mkdirSync(dataFolder, { mode: 0o700 })
  writeFileSync(configPath, '')
  const env = { TOLLGATE_BODIES_BYTES_MAX: String(bodiesMebibytes * 2 ** 20) }
  const gateway = await startCrashGateway({ dataFolder, databaseUrl: undefined, configPath }, { env })
  const connections: RawConnection[] = []
  try {
    const before = mebibytesOf(gateway.pid)
    let most = before
    for (let at = 0; at < clients; at++) {
      const surface = allSurfaces[at % allSurfaces.length]
      if (!surface) throw new Error('there is no surface')
      const connection = await connect(gateway.url)
      connections.push(connection)
      const headers = { 'content-length': String(bodyBytes) }
      await connection.send(requestBytes(surface, { key: gateway.key, headers }))
      void connection.send(unfinished)
    }
    const answered = () => connections.filter((connection) => connection.received() !== '')
    while (answered().length < clients - thatFit) {
      most = Math.max(most, mebibytesOf(gateway.pid))
      await Bun.sleep(20)
    }
    for (const connection of answered()) {
      const response = await connection.response()
      if (response === 'closed') throw new Error('closed without an answer')
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^[123]$/)])
    }
    expect(most - before).toBeLessThan(bodiesMebibytes + growthMax)
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200)
  } finally {
    for (const connection of connections) connection.leave()
    await gateway.kill()
  }
})
