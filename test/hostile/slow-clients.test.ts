// The short form of besiege.ts: fewer slow clients, the same promises.

import { expect, test } from 'bun:test'
import { runSlowClients } from './slow-clients.ts'

/** A connection costs some kilobytes and a stream 150 at most; the rest is a machine that is busy with other tests. */
const growthMax = 150

test('R6: slow headers, slow bodies and slow readers cost good traffic no answer and the gateway little memory', async () => {
  const result = await runSlowClients({ slowHeaders: 400, slowBodies: 400, slowReaders: 150, goodRequests: 400 })
  expect(result.errors).toEqual([])
  expect(Object.keys(result.probes)).toEqual(['200'])
  expect(result.openReaders).toBe(150)
  expect(result.mebibytesMost - result.mebibytesBefore).toBeLessThan(growthMax)
})

// 300 files are 118 connections, of which 103 may be running requests.
test('R6: at the limit of open files, slow headers and bodies give way to good traffic, and every probe is answered', async () => {
  const siege = { slowHeaders: 50, slowBodies: 150, slowReaders: 50, goodRequests: 400, files: 300 }
  const result = await runSlowClients(siege)
  expect(result.errors).toEqual([])
  expect(Object.keys(result.probes)).toEqual(['200'])
  expect(result.openReaders).toBe(50)
})
