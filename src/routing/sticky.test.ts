import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { createRoutes } from './route.ts'
import { createStickyRoutes } from './sticky.ts'

const minute = 60

function createBench() {
  const clock = createJumpClock()
  const keys = createRoutes()
  const at = (providerId: string) =>
    keys.find({ providerId, baseUrl: 'https://x', upstreamModel: 'm', credentialId: 'platform' })
  return { clock, sticky: createStickyRoutes({ clock }), a: at('a'), b: at('b') }
}

test('remembers a route for five minutes since its last use', () => {
  const { clock, sticky, a } = createBench()
  expect(sticky.find('talk')).toBeUndefined()
  sticky.remember('talk', a, 'short')
  clock.jump(4 * minute)
  expect(sticky.find('talk')).toBe(a)
  sticky.remember('talk', a, 'short')
  clock.jump(5 * minute - 1)
  expect(sticky.find('talk')).toBe(a)
  clock.jump(1)
  expect(sticky.find('talk')).toBeUndefined()
})

test('remembers for an hour after a long cache write, also if later turns only read it', () => {
  const { clock, sticky, a } = createBench()
  sticky.remember('talk', a, 'long')
  clock.jump(59 * minute)
  sticky.remember('talk', a, 'short')
  clock.jump(59 * minute)
  expect(sticky.find('talk')).toBe(a)
  clock.jump(minute)
  expect(sticky.find('talk')).toBeUndefined()
})

test('a different route replaces it, without the long cache', () => {
  const { clock, sticky, a, b } = createBench()
  sticky.remember('talk', a, 'long')
  sticky.remember('talk', b, 'short')
  expect(sticky.find('talk')).toBe(b)
  clock.jump(5 * minute)
  expect(sticky.find('talk')).toBeUndefined()
})

test('evicts the least recently used conversation', () => {
  const { sticky, a } = createBench()
  for (let n = 0; n < 20_000; n++) sticky.remember(`talk ${n}`, a, 'short')
  sticky.remember('talk 0', a, 'short')
  sticky.remember('one more', a, 'short')
  expect(sticky.size()).toBe(20_000)
  expect(sticky.find('talk 0')).toBe(a)
  expect(sticky.find('talk 1')).toBeUndefined()
  expect(sticky.find('talk 2')).toBe(a)
})
