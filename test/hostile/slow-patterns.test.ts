// No text that somebody else wrote may make a regular expression stand still. Every one in the source is tried on
// texts made for it; what is left to a bounded text has its reason here.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { readSources } from '../layers/read-sources.ts'
import { readSource } from '../layers/source-text.ts'
import { pump } from './pump.ts'

const root = join(import.meta.dir, '../..')

/** Expressions that read only what is ours or the operator's, or short. */
const excepted: Readonly<Record<string, string>> = {
  '/\\/+$/': 'ends of addresses that operators write',
  '/\\B(?=(\\d{3})+$)/g': 'amounts and counts of ours, of 20 digits at most',
  '/\\s*\\n\\s*/g': 'the schema of the configuration file, which is written by us',
}

test('no regular expression in the source takes quadratic time', async () => {
  const places = new Map<string, string>()
  for (const [path, text] of await readSources(root)) {
    if (path.includes('.test.') || path.startsWith('src/cli/')) continue
    for (const pattern of readSource(text).patterns) places.set(pattern, path)
  }
  expect(places.size).toBeGreaterThan(200)
  const slow = [...places].flatMap(([pattern, path]) => {
    const text = pump(pattern)
    return text === undefined ? [] : [{ pattern, found: `${path} ${pattern} on ${text}` }]
  })
  expect(slow.flatMap(({ pattern, found }) => (Object.hasOwn(excepted, pattern) ? [] : [found]))).toEqual([])
  expect(Object.keys(excepted).filter((pattern) => !slow.some((each) => each.pattern === pattern))).toEqual([])
})

test.each([
  // As they once stood in the source.
  ['/\\.(\\w+)(?:[?#].*)?$/', true],
  ['/\\b([A-Za-z]{2,5}[-_])(?=[a-z_-]*[A-Z0-9*])[A-Za-z0-9*_-]{16,}/g', true],
  ['/\\s*,\\s*/', true],
  ['/^\\s+/', false],
  ['/\\d{1,12} tokens/', false],
])('%s is slow: %p', (pattern, isSlow) => {
  expect(pump(pattern) !== undefined).toBe(isSlow)
})
