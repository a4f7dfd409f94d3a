// An input that the provider has counted is paid by all alike, whether they stay for the answer or leave it, and teaches
// the next hold; counts from the endpoints of one workspace do not affect others.

import { afterAll, describe, expect, test } from 'bun:test'
import { readRecomputeCharge } from '../../src/catalog/price-versions.ts'
import { verify } from '../../src/ledger/verify.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { manage } from '../parts/manage.ts'
import { answerWith, wordsOf } from '../parts/upstream-words.ts'
import { expectPaid, openTill, type Path, streamedPaths, wholePaths } from './till.ts'
import type { Purse } from './wallets.ts'

const till = await openTill({ models: 10 })
afterAll(() => till[Symbol.asyncDispose]())

/** 40 kB of which every byte is a token, where four bytes to a token were thought of. */
const messages = [{ role: 'user', content: '\u{1F9FF}'.repeat(10_000) }]
const usage = { input_tokens: 40_000, output_tokens: 1 }
/** Beyond a thousand tokens of input: 40,000 × 700 + 1,575. */
const price = 28_001_575n

/** The id of a request whose client left with the first token. */
async function leave(path: Path, model: object, purse?: Purse): Promise<string> {
  const before = (await till.over(0)).length
  till.upstream.handle(async (_, reply) => {
    await reply.startStream()
    await reply.chunk(wordsOf('messages').opening({ usage }) + wordsOf('messages').text('t01.'))
  })
  const connection = await till.send(path, { ...model, messages, max_tokens: 100 }, purse)
  await connection.until('t01.')
  connection.leave()
  return (await till.over(before + 1)).at(-1) ?? ''
}

describe.each(streamedPaths.filter(({ provider }) => provider === 'messages'))('$name', (path) => {
  test('a client that leaves pays for the input like one that stays, and the next hold is made for it', async () => {
    const model = till.fresh(path)
    const requestId = await leave(path, model)
    await expectPaid(till, { requestId }, price, 'estimated')
    const held = (await till.line(requestId)).held ?? 0n
    expect(held).toBeLessThan(price)
    expect((await till.line(await leave(path, model))).held ?? 0n).toBeGreaterThan(price)
  })

  test('the part that the wallet cannot pay is written off, and the operator sees it', async () => {
    const purse = await till.wallets.open('0.027')
    const requestId = await leave(path, till.fresh(path), purse)
    await expectPaid(till, { requestId }, 27_000_000n, 'estimated', purse)
    expect(await till.wallets.explain(requestId)).toMatchObject({
      charge: { total: '0.028001575', charged: '0.027', written_off: '0.001001575' },
    })
  })
})

test("counts of a workspace's own endpoint do not raise the holds of others", async () => {
  const [path] = wholePaths
  if (!path) throw new Error('there is no path')
  const model = till.fresh(path)
  const purse = await till.wallets.open()
  const provider = model.model.replace('till/', '')
  const credential = `/api/workspaces/${purse.workspaceId}/credentials/${provider}-0`
  await manage(till.gateway, 'PUT', credential, { api_key: 'own' })
  const heldAfter = async (input: number, who?: Purse): Promise<bigint> => {
    till.upstream.handle(answerWith({ input, output: 1 }, ['a']))
    const { requestId } = await till.ask(path, { ...model, messages }, who ? { purse: who } : {})
    return (await till.line(requestId)).held ?? -1n
  }
  const before = await heldAfter(10_000)
  expect(await heldAfter(40_000, purse)).toBe(0n)
  // A little less, if anything: what came out as expected is learned from slowly.
  expect(await heldAfter(40_000)).toBeLessThanOrEqual(before)
  expect(await heldAfter(10_000)).toBeGreaterThan(before)
})

test('promise M7: every charge follows from its usage and its price', async () => {
  const database = await openDatabase({ url: undefined, dataFolder: till.gateway.dataFolder })
  const { findings } = await verify(database, { readPrice: readRecomputeCharge })
  await database.close()
  expect(findings).toEqual([])
})
