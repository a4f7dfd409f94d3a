// The short form of besiege.ts: fewer slow clients, the same promises.

import { expect, test } from 'bun:test'
import { runSlowClients } from './slow-clients.ts'

/** A connection costs some kilobytes and a stream 150 at most; the rest is a machine that is busy with other tests. */
const growthMax = 150

test('R6: slow headers and slow readers cost good traffic no answer and the gateway little memory', async () => {
  const result = await runSlowClients({ slowHeaders: 400, slowReaders: 150, goodRequests: 400 })
  expect(result.errors).toEqual([])
  expect(result.openReaders).toBe(150)
  expect(result.mebibytesMost - result.mebibytesBefore).toBeLessThan(growthMax)
})
