// What an endpoint remembers between two checks: its failures, and its verdicts.

import { afterAll, beforeEach, expect, test } from 'bun:test'
import { createTestClock } from '../../test/parts/ledger.ts'
import { startUpstream } from '../../test/parts/upstream.ts'
import type { Policy } from '../kernel/policy.ts'
import { Secret } from '../kernel/secret.ts'
import { PolicyEndpoint } from './policy-endpoint.ts'

const server = startUpstream((_, reply) => reply.json(500, {}))
afterAll(() => server.stop())

const policy: Policy = {
  ...{ id: 'judge', url: server.url, secret: new Secret(`whsec_${Buffer.alloc(32, 7).toString('base64')}`) },
  ...{ when: 'request', workspaceId: undefined, projects: undefined, models: undefined },
  ...{ timeoutMs: 10_000, onFailure: 'closed', mode: 'enforce', images: 'digest' },
}

let clock = createTestClock()
let endpoint = new PolicyEndpoint(policy, clock)
let checks = 0
beforeEach(() => {
  clock = createTestClock()
  endpoint = new PolicyEndpoint(policy, clock)
})

const check = (data: object = { text: `text ${checks++}` }) => endpoint.check('request.check', 'req_1', data)
const fail = () => server.handle((_, reply) => reply.json(500, {}), 'stay unasked')
const decide = (decision: string) => server.handle((_, reply) => reply.json(200, { decision }), 'stay unasked')
async function callsOf(work: () => Promise<unknown>): Promise<number> {
  const before = server.calls.length
  await work()
  return server.calls.length - before
}

test('rests for five seconds after five failures in a row, then one check tries it again', async () => {
  fail()
  for (let failures = 0; failures < 5; failures++) expect(await check()).toMatchObject({ why: 'it answered 500' })
  clock.advance(1_000)
  const resting = 'it has failed 5 times in a row and is not called now'
  expect(
    await callsOf(async () => expect(await check()).toEqual({ kind: 'failed', why: resting, retryMs: 4_000 })),
  ).toBe(0)
  clock.advance(4_000)
  const together = () => Promise.all([check(), check(), check()])
  expect(await callsOf(together)).toBe(1)
  // It failed again, so it rests again.
  expect(await callsOf(check)).toBe(0)
  clock.advance(5_000)
  decide('allow')
  expect(await check()).toEqual({ kind: 'allowed' })
  expect(await callsOf(together)).toBe(3)
})

test('counts only failures in a row', async () => {
  fail()
  for (let failures = 0; failures < 4; failures++) await check()
  decide('block')
  await check()
  fail()
  for (let failures = 0; failures < 4; failures++) await check()
  expect(await callsOf(check)).toBe(1)
})

test('remembers a verdict for a minute by everything that was sent, and no failure', async () => {
  decide('allow')
  const data = { workspace: 'ws_1', key: 'key_1', text: 'a' }
  expect(await callsOf(() => check(data))).toBe(1)
  expect(await callsOf(() => check(data))).toBe(0)
  for (const other of [{ workspace: 'ws_2' }, { key: 'key_2' }, { text: 'b' }]) {
    expect(await callsOf(() => check({ ...data, ...other }))).toBe(1)
  }
  expect(await callsOf(() => endpoint.check('answer.check', 'req_1', data))).toBe(1)
  clock.advance(60_000)
  fail()
  expect(await callsOf(() => check(data))).toBe(1)
  expect(await callsOf(() => check(data))).toBe(1)
})

test('a verdict that is remembered is given while the endpoint rests', async () => {
  decide('block')
  const data = { text: 'a' }
  await check(data)
  fail()
  for (let failures = 0; failures < 5; failures++) await check()
  expect(await check(data)).toMatchObject({ kind: 'blocked' })
})

test('remembers at most a thousand verdicts, and forgets the oldest', async () => {
  decide('allow')
  for (let at = 0; at <= 1_000; at++) await check({ at })
  expect(await callsOf(() => check({ at: 1 }))).toBe(0)
  expect(await callsOf(() => check({ at: 0 }))).toBe(1)
})
