import { expect, test } from 'bun:test'
import { allocatedBytes } from './collector-log.ts'

const line = (heap: string, begin: number, end: number) =>
  `[GC<${heap}>: START M ${begin}kb => FullCollection, a=0kb hf=0.000 v=0kb => ${end}kb, p=1.5ms (max 1.5), cycle 1.4ms END]`

test('counts allocations from the end of one collection to the start of the next, on the largest heap', () => {
  const lines = [
    line('0xa', 9_000, 1_000),
    '{"message":"request"}',
    // 4,000 KB later, of which 100 are room that every begin counts.
    line('0xa', 5_000, 1_200),
    line('0xb', 700, 600),
    line('0xa', 2_400, 1_200),
    line('0xa', 1_300, 1_200),
  ]
  expect(allocatedBytes(lines, 1)).toBe(1024 * (4_000 - 100 + 1_200 - 100))
})
