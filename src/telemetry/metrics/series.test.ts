import { expect, test } from 'bun:test'
import { Counter, Histogram } from './instruments.ts'
import { SeriesTable } from './series.ts'

const table = (labels: readonly string[], more: { seriesMax?: number; keep?: readonly string[] } = {}) =>
  new SeriesTable({ labels, ...more, make: () => new Counter() })

const shown = (of: SeriesTable<Counter>) =>
  Object.fromEntries(of.all.map(({ values, cell }) => [values.join(' '), cell.value]))

test('the same values find the same cell, in every number of labels', () => {
  for (const values of [[], ['a'], ['a', 'b'], ['a', 'b', 'c'], ['a', 'b', 'c', 'd'], ['a', 'b', 'c', 'd', 'e']]) {
    const one = table(values.map((_, at) => `label${at}`))
    const [a, b, c, d, e] = values
    one.find(a, b, c, d, e).add(1)
    one.find(a, b, c, d, e).add(2)
    expect(shown(one)).toEqual({ [values.join(' ')]: 3 })
  }
})

test('values that differ in the last label only are different series', () => {
  const two = table(['model', 'provider'])
  two.find('m', 'p').add(1)
  two.find('m', 'q').add(5)
  expect(shown(two)).toEqual({ 'm p': 1, 'm q': 5 })
})

test('what has no labels is there before anything happens', () => {
  expect(shown(table([]))).toEqual({ '': 0 })
})

test('beyond the number of series the rest is counted as other, and how often', () => {
  const few = table(['project'], { seriesMax: 2 })
  for (const project of ['a', 'b', 'c', 'd', 'c', 'a']) few.find(project).add(1)
  // c, d and c again.
  expect(shown(few)).toEqual({ a: 2, b: 1, other: 3 })
  expect(few.folded).toBe(3)
})

test('labels with few values keep theirs in other', () => {
  const few = table(['status', 'project'], { seriesMax: 1, keep: ['status'] })
  few.find('200', 'a').add(1)
  few.find('200', 'b').add(1)
  few.find('503', 'c').add(1)
  few.find('503', 'd').add(1)
  expect(shown(few)).toEqual({ '200 a': 1, '200 other': 1, '503 other': 2 })
})

test('series of other do not count against the number', () => {
  const few = table(['status', 'project'], { seriesMax: 2, keep: ['status'] })
  few.find('200', 'a').add(1)
  few.find('200', 'b').add(1)
  few.find('200', 'c').add(1)
  expect(few.all.length).toBe(3)
  few.find('200', 'a').add(1)
  expect(shown(few)).toEqual({ '200 a': 2, '200 b': 1, '200 other': 1 })
})

test('a bound belongs to its own bucket, and what is above the last one to the last bucket', () => {
  const histogram = new Histogram([1, 5])
  for (const value of [0, 1, 1.01, 5, 6, 100]) histogram.observe(value)
  expect(histogram.counts).toEqual([2, 2, 2])
  expect(histogram.count).toBe(6)
  expect(histogram.sum).toBeCloseTo(113.01, 9)
})
