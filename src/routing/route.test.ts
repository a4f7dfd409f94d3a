import { expect, test } from 'bun:test'
import { createRoutes, type RouteNames } from './route.ts'

const names: RouteNames = {
  providerId: 'acme',
  baseUrl: 'https://eu',
  upstreamModel: 'large',
  credentialId: 'platform',
}

test('the same names are the same key', () => {
  const keys = createRoutes()
  const key = keys.find(names)
  expect(keys.find({ ...names })).toBe(key)
  for (const other of [
    { ...names, providerId: 'b' },
    { ...names, baseUrl: 'https://us' },
    { ...names, upstreamModel: 'small' },
    { ...names, credentialId: 'cred_1' },
  ]) {
    expect(keys.find(other)).not.toBe(key)
  }
})

test('breakers and cooldowns are shared by exactly the routes they concern', () => {
  const keys = createRoutes()
  const key = keys.find(names)
  const shared = (other: Partial<RouteNames>) => {
    const found = keys.find({ ...names, ...other })
    return (['breaker', 'credential', 'throttle', 'disabled', 'latency'] as const).filter(
      (what) => found[what] === key[what],
    )
  }
  expect(shared({ credentialId: 'cred_1' })).toEqual(['breaker'])
  expect(shared({ upstreamModel: 'small' })).toEqual(['credential'])
  expect(shared({ baseUrl: 'https://us' })).toEqual(['credential', 'throttle'])
  expect(shared({ providerId: 'other' })).toEqual([])
})

test('evicts the oldest own credential, never a route of the operator', () => {
  const keys = createRoutes()
  const platform = keys.find(names)
  const first = keys.find({ ...names, credentialId: 'cred_first' })
  for (let n = 0; n < 10_000; n++) keys.find({ ...names, credentialId: `cred_${n}` })
  expect(keys.find(names)).toBe(platform)
  expect(keys.find({ ...names, credentialId: 'cred_first' })).not.toBe(first)
  expect([...keys.all()]).toHaveLength(10_001)
})
