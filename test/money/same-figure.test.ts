// The same usage costs the same to the nano-dollar on every path through the gateway, and every place shows the same
// figure: the usage object, the header, the request log and the transfer.

import { afterAll, describe, expect, test } from 'bun:test'
import { forEachEngine } from '../parts/engines.ts'
import { answerWith, type Buckets } from '../parts/upstream-words.ts'
import { allPaths, expectPaid, openTill, type Path } from './till.ts'
import { usd } from './wallets.ts'

const till = await openTill()
afterAll(() => till[Symbol.asyncDispose]())

interface Row {
  readonly name: string
  readonly used: Buckets
  /** Nano-dollars. */
  readonly costs: bigint
}

/** Per token: 350 in, 2.8 read, 437.5 written, 700 written for an hour, 1,050 out. */
const rows: readonly Row[] = [
  // 7 × 350 + 1,050
  { name: 'input', used: { input: 7, output: 1 }, costs: 3_500n },
  // 350 + 9 × 1,050
  { name: 'output', used: { input: 1, output: 9 }, costs: 9_800n },
  // 350 + 3 × 2.8 + 1,050 = 1,408.4
  { name: 'a cache that was read', used: { input: 1, read: 3, output: 1 }, costs: 1_409n },
  // 350 + 3 × 437.5 + 1,050 = 2,712.5
  { name: 'a cache that was written', used: { input: 1, write: 3, output: 1 }, costs: 2_713n },
  // 350 + 3 × 700 + 1,050
  { name: 'a cache that was written for an hour', used: { input: 1, writeLong: 3, output: 1 }, costs: 3_500n },
  // 11 × 350 + 3 × 2.8 + 5 × 437.5 + 2 × 700 + 13 × 1,050 = 21,095.9, rounded once; each rounded would make 21,097
  {
    name: 'all of them, rounded up once',
    used: { input: 11, read: 3, write: 5, writeLong: 2, output: 13 },
    costs: 21_096n,
  },
  // 11 × 350 + 3 × 2.8 + 5 × 437.5 + 13 × 1,050 = 19,695.9
  {
    name: 'all that every dialect has a word for',
    used: { input: 11, read: 3, write: 5, output: 13 },
    costs: 19_696n,
  },
  // A thousand in all: 400 × 350 + 300 × 2.8 + 300 × 437.5 + 2 × 1,050
  { name: 'input up to a tier', used: { input: 400, read: 300, write: 300, output: 2 }, costs: 274_190n },
  // One more: 401 × 700 + 300 × 5.6 + 300 × 875 + 2 × 1,575
  { name: 'input beyond a tier', used: { input: 401, read: 300, write: 300, output: 2 }, costs: 548_030n },
  // All of it dearer: 2,001 × 2.8 × 2 + 1 × 700 + 1 × 1,575 = 13,480.6
  { name: 'a tier reached by reading a cache', used: { input: 1, read: 2001, output: 1 }, costs: 13_481n },
]

function isSaid({ used }: Row, { provider }: Path): boolean {
  if (provider === 'gemini') return used.write === undefined && used.writeLong === undefined
  return provider === 'messages' || used.writeLong === undefined
}

describe.each([...allPaths])('$name', (path) => {
  test.each(rows.filter((row) => isSaid(row, path)))('$name', async ({ used, costs }) => {
    till.upstream.handle(answerWith(used))
    const before = await till.wallets.read()
    const answer = await till.ask(path)
    expect(answer.status).toBe(200)
    expect(answer.cost).toBe(usd(costs))
    expect(answer.headers.get('x-tollgate-cost')).toBe(path.stream ? null : usd(costs))
    expect(answer.headers.get('x-tollgate-usage')).toBeNull()
    await expectPaid(till, answer, costs)
    expect(before.posted - (await till.wallets.read()).posted).toBe(costs)
  })
})

test.each(allPaths.filter(({ surface, stream }) => surface.name === 'chat' && stream))(
  '$name: a caller that does not ask for usage pays the same and is spared the record',
  async (path) => {
    till.upstream.handle((call, reply) => {
      expect(call.json()).toMatchObject(path.provider === 'chat' ? { stream_options: { include_usage: true } } : {})
      return answerWith({ input: 7, output: 1 })(call, reply)
    })
    const answer = await till.ask(path, { stream_options: undefined })
    expect(answer.text).not.toContain('"usage"')
    await expectPaid(till, answer, 3_500n)
  },
)

forEachEngine((engine) => {
  test('every path is quoted and charged the same figure', async () => {
    using place = await engine.createPlace()
    await using shared = await openTill({ databaseUrl: place.url })
    for (const path of allPaths) {
      // Gemini counts no cache writes: 5 × 437.5 less, 17,508.4, rounded up.
      const isCounted = path.provider !== 'gemini'
      const costs = isCounted ? 19_696n : 17_509n
      shared.upstream.handle(answerWith({ input: 11, read: 3, output: 13, ...(isCounted && { write: 5 }) }))
      const before = await shared.wallets.read()
      expect([path.name, (await shared.ask(path)).cost]).toEqual([path.name, usd(costs)])
      expect([path.name, before.posted - (await shared.wallets.read()).posted]).toEqual([path.name, costs])
    }
  })
})
