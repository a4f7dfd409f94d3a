import { expect, test } from 'bun:test'
import { Counter, createRegistry, Histogram, SeriesTable } from './metrics.ts'

test('asked values are read anew at every read', async () => {
  const registry = createRegistry()
  let level = 1
  registry.ask({ name: 'level', help: '', type: 'gauge', read: () => level })
  expect((await registry.read())[0]?.points).toEqual([{ values: [], value: 1 }])
  level = 2
  expect((await registry.read())[0]?.points).toEqual([{ values: [], value: 2 }])
})

test('a value that cannot be read is left out and counted, and the others are returned', async () => {
  const registry = createRegistry()
  registry.ask({
    name: 'broken',
    help: '',
    type: 'gauge',
    read: () => {
      throw new Error('no')
    },
  })
  registry.ask({ name: 'gone', help: '', type: 'gauge', read: () => Promise.reject(new Error('no database')) })
  registry.ask({ name: 'fine', help: '', type: 'gauge', read: async () => 4 })
  const readings = await registry.read()
  expect(readings.map(({ name }) => name)).toEqual(['fine'])
  await registry.read()
  expect(registry.failures()).toEqual([
    { values: ['broken'], value: 2 },
    { values: ['gone'], value: 2 },
  ])
})

test('values under the same labels are merged to their sum, or to the largest', async () => {
  const registry = createRegistry()
  const read = () => [
    { values: ['a'], value: 4 },
    { values: ['b'], value: 1 },
    { values: ['a'], value: 3 },
  ]
  registry.ask({ name: 'sum', help: '', type: 'gauge', labels: ['k'], read })
  registry.ask({ name: 'max', help: '', type: 'gauge', labels: ['k'], merge: 'max', read })
  const [sum, max] = await registry.read()
  expect(sum?.points).toEqual([
    { values: ['a'], value: 7 },
    { values: ['b'], value: 1 },
  ])
  expect(max?.points).toEqual([
    { values: ['a'], value: 4 },
    { values: ['b'], value: 1 },
  ])
})

test('the largest of several negative values is negative', async () => {
  const registry = createRegistry()
  const read = () => [-2, -1].map((value) => ({ values: ['a'], value }))
  registry.ask({ name: 'max', help: '', type: 'gauge', labels: ['k'], merge: 'max', read })
  expect((await registry.read())[0]?.points).toEqual([{ values: ['a'], value: -1 }])
})

test('values beyond the maximum of series are merged as other, and counted', async () => {
  const registry = createRegistry()
  const read = () => ['a', 'b', 'c', 'd', 'a'].map((name) => ({ values: [name], value: 1 }))
  registry.ask({ name: 'many', help: '', type: 'gauge', labels: ['k'], seriesMax: 2, read })
  const [reading] = await registry.read()
  expect(reading?.points).toEqual([
    { values: ['a'], value: 2 },
    { values: ['b'], value: 1 },
    { values: ['other'], value: 2 },
  ])
  expect(registry.folded()).toEqual([{ values: ['many'], value: 2 }])
})

test('a counter with perUnit adds up exactly', async () => {
  const registry = createRegistry()
  const cost = registry.counter({ name: 'cost_usd_total', help: '', perUnit: 1e9 }).find()
  // Ten times a tenth of a dollar: as dollars, 0.1 added up ten times is 0.9999999999999999.
  for (let at = 0; at < 10; at++) cost.add(100_000_000)
  expect((await registry.read())[0]?.points).toEqual([{ values: [], value: 1 }])
})

const table = (labels: readonly string[], more: { seriesMax?: number; keep?: readonly string[] } = {}) =>
  new SeriesTable({ labels, ...more }, (values) => new Counter(values))

const shown = (of: SeriesTable<Counter>) =>
  Object.fromEntries(of.all.map(({ values, value }) => [values.join(' '), value]))

test('the same values find the same cell, in every number of labels', () => {
  for (const values of [[], ['a'], ['a', 'b'], ['a', 'b', 'c'], ['a', 'b', 'c', 'd'], ['a', 'b', 'c', 'd', 'e']]) {
    const one = table(values.map((_, at) => `label${at}`))
    one.find(...values).add(1)
    one.find(...values).add(2)
    expect(shown(one)).toEqual({ [values.join(' ')]: 3 })
  }
})

test('values that differ in the last label only are different series', () => {
  const two = table(['model', 'provider'])
  two.find('m', 'p').add(1)
  two.find('m', 'q').add(5)
  expect(shown(two)).toEqual({ 'm p': 1, 'm q': 5 })
})

test('a metric without labels exists from the start', () => {
  expect(shown(table([]))).toEqual({ '': 0 })
})

test('beyond the maximum of series the rest is counted as other, and how often', () => {
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

test('series of other do not count towards the maximum', () => {
  const few = table(['status', 'project'], { seriesMax: 2, keep: ['status'] })
  few.find('200', 'a').add(1)
  few.find('200', 'b').add(1)
  few.find('200', 'c').add(1)
  expect(few.all.length).toBe(3)
  few.find('200', 'a').add(1)
  expect(shown(few)).toEqual({ '200 a': 2, '200 b': 1, '200 other': 1 })
})

test('a bound belongs to its own bucket, and values above the last bound to the last bucket', () => {
  const histogram = new Histogram([], [1, 5])
  for (const value of [0, 1, 1.01, 5, 6, 100]) histogram.observe(value)
  expect(histogram.counts).toEqual([2, 2, 2])
  expect(histogram.sum).toBeCloseTo(113.01, 9)
})
