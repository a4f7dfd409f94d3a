import { expect, test } from 'bun:test'
import { createRegistry } from './registry.ts'

test('what is asked for is asked at every reading', async () => {
  const registry = createRegistry()
  let level = 1
  registry.ask({ name: 'level', help: '', type: 'gauge', read: () => level })
  expect((await registry.read())[0]?.points).toEqual([{ values: [], value: 1 }])
  level = 2
  expect((await registry.read())[0]?.points).toEqual([{ values: [], value: 2 }])
})

test('one value that cannot be had is left out and counted, and the others are told', async () => {
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

test('values under the same labels become one: their sum, or the largest where that is asked for', async () => {
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

test('too many values are told together as other, and counted', async () => {
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

test('a counter of a smaller unit is shown in the larger, exactly', async () => {
  const registry = createRegistry()
  const cost = registry.counter({ name: 'cost_usd_total', help: '', perUnit: 1e9 }).find()
  // Ten times a tenth of a dollar: as dollars, 0.1 added up ten times is 0.9999999999999999.
  for (let at = 0; at < 10; at++) cost.add(100_000_000)
  expect((await registry.read())[0]?.points).toEqual([{ values: [], value: 1 }])
})
