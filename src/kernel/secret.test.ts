import { expect, test } from 'bun:test'
import { inspect } from 'node:util'
import { Secret } from './secret.ts'

const value = 'sk-canary-0123456789-c41f'

test('shows only the last four characters, however it is printed', () => {
  const secret = new Secret(value)
  const masked = '[secret …c41f]'
  expect(String(secret)).toBe(masked)
  expect(`${secret}`).toBe(masked)
  expect(JSON.stringify({ secret })).toBe(`{"secret":"${masked}"}`)
  expect(inspect(secret)).toBe(masked)
  for (const text of [inspect({ secret }), Bun.inspect({ secret }), JSON.stringify([secret])]) {
    expect(text).not.toContain('canary')
  }
})

test('shows nothing of a short secret', () => {
  expect(String(new Secret('hunter2'))).toBe('[secret]')
  expect(String(new Secret('fifteen-letters'))).toBe('[secret]')
  expect(String(new Secret('sixteen--letters'))).toBe('[secret …ters]')
})

test('reveals the value on request', () => {
  expect(new Secret(value).reveal()).toBe(value)
})

test('a secret has no property that holds its value', () => {
  expect(Object.values(new Secret(value))).toEqual([])
})
