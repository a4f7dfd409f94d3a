import { expect, test } from 'bun:test'
import { checkClock, checkProxy } from './check-machine.ts'

const noon = Date.UTC(2026, 10, 8, 12)

test('the clock is held against what a provider dates its answers, up to a minute', () => {
  const at = (skewMs: number) => checkClock({ now: noon, dated: { at: noon, receivedAt: noon + skewMs } })
  expect(at(60_000)).toMatchObject({ verdict: 'ok' })
  expect(at(-60_000)).toMatchObject({ verdict: 'ok' })
  expect(at(61_000)).toMatchObject({ verdict: 'wrong', what: expect.stringContaining("61 s ahead of a provider's") })
  expect(at(-300_000)).toMatchObject({ verdict: 'wrong', what: expect.stringContaining("300 s behind a provider's") })
})

test('without an answer it must not be before what is in the database, nor before the program', () => {
  expect(checkClock({ now: noon })).toMatchObject({ verdict: 'ok', what: '2026-11-08 12:00:00 UTC' })
  expect(checkClock({ now: noon, newestRow: noon + 30_000 })).toMatchObject({ verdict: 'ok' })
  expect(checkClock({ now: noon, newestRow: noon + 90_000 })).toMatchObject({ verdict: 'wrong' })
  expect(checkClock({ now: 0 })).toMatchObject({ verdict: 'wrong' })
})

test('a proxy is named without its password, and told to spare this machine', () => {
  expect(checkProxy({})).toEqual([expect.objectContaining({ verdict: 'ok' })])
  const set = { HTTP_PROXY: 'http://user:canary@proxy.example:3128' }
  const [first, second] = checkProxy(set)
  expect(first).toMatchObject({ verdict: 'ok', what: 'HTTP_PROXY sends calls through proxy.example:3128' })
  expect(second).toMatchObject({ verdict: 'note', advice: 'NO_PROXY=127.0.0.1,localhost' })
  expect(checkProxy({ ...set, NO_PROXY: 'localhost, 127.0.0.1' })).toHaveLength(1)
  // Only calls over https would take this one, and none to this machine is.
  expect(checkProxy({ HTTPS_PROXY: 'http://proxy.example:3128' })).toHaveLength(1)
  expect(checkProxy({ HTTPS_PROXY: 'proxy' })[0]).toMatchObject({ verdict: 'wrong' })
})
