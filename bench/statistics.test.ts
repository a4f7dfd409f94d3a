import { expect, test } from 'bun:test'
import { likelyRange, percentile } from './statistics.ts'

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

test('the range of a figure is a point where all rounds agree, and lies around it where they do not', () => {
  expect(likelyRange([3, 3, 3, 3], mean)).toEqual([3, 3])
  const rounds = Array.from({ length: 100 }, (_, at) => at % 2)
  const [low, high] = likelyRange(rounds, mean)
  // The mean of a hundred fair coins is 0.5 with a deviation of 0.05: 1.64 of them to each side leave out a tenth.
  expect([Math.abs(low - 0.418) < 0.03, Math.abs(high - 0.582) < 0.03]).toEqual([true, true])
  expect(likelyRange(rounds, mean)).toEqual([low, high])
})

test('a percentile is the smallest value that so many do not exceed', () => {
  const values = Array.from({ length: 200 }, (_, at) => 200 - at)
  expect([percentile(values, 50), percentile(values, 99), percentile([], 50)]).toEqual([100, 198, Number.NaN])
})
