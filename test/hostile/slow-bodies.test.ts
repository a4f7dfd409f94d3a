// Bodies that come a byte at a time, on a clock that is pushed and not waited for.

import { afterAll, describe, expect, test } from 'bun:test'
import { startGateway } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { adminToken } from '../parts/manage.ts'
import { connect, type RawResponse } from '../parts/raw-client.ts'
import { allSurfaces, expectFailure, requestBytes } from '../parts/surfaces.ts'

const clock = createJumpClock()
const gateway = await startGateway({ clock })
afterAll(() => gateway.stop())

/** Sends the start of a body of 4,000 bytes, and a byte of it every ten seconds until there is an answer. */
async function drip(
  head: Uint8Array | string,
): Promise<{ readonly response: RawResponse | 'closed'; seconds: number }> {
  const connection = await connect(gateway.url)
  await connection.send(head)
  let seconds = 0
  for (;;) {
    // Whatever was sent before has been read when another connection is answered.
    expect((await fetch(`${gateway.url}/healthz`, { headers: { connection: 'close' } })).status).toBe(200)
    if (connection.received() !== '' || connection.isClosed() || seconds > 300) break
    clock.jump(10)
    seconds += 10
    await connection.send('x')
  }
  const response = await connection.response()
  await connection.closed
  return { response, seconds }
}

const says = 'The body took too long to arrive: Tollgate waits a minute, and a second more for each 100 KB'

describe('R6: a body that comes a byte every ten seconds gets a 408 after a minute, and its connection is closed:', () => {
  test.each([...allSurfaces])('$name', async (surface) => {
    const headers = { 'content-length': '4000' }
    const { response, seconds } = await drip(requestBytes(surface, { key: gateway.key, headers }))
    expectFailure(surface, response, { code: 'REQUEST_TIMEOUT', says })
    expect(seconds).toBeWithin(60, 80)
  })

  test.each([
    ['the console, without a key', '/console/session', 'origin: http://gateway.test\r\n'],
    ['the management API', '/api/workspaces', `authorization: Bearer ${adminToken(gateway.dataFolder)}\r\n`],
  ])('%s', async (_, path, header) => {
    const framing = 'content-type: application/json\r\ncontent-length: 4000\r\n'
    const { response } = await drip(`POST ${path} HTTP/1.1\r\nhost: gateway.test\r\n${header}${framing}\r\n{`)
    if (response === 'closed') throw new Error('closed without an answer')
    expect(response.status).toBe(408)
    expect(JSON.parse(response.body)).toMatchObject({
      error: { code: 'REQUEST_TIMEOUT', message: expect.stringContaining(says) },
    })
  })
})
