// An operator, or somebody with the operator's file, who changes a price while an answer is on its way.

import { afterAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { ask } from '../parts/ask.ts'
import { requestRecords, startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import { bodyOf, chat } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'

const mayEnd = Promise.withResolvers<void>()

const upstream = startUpstream(async (call, reply) => {
  const { opening, says, ending } = wordsFor(call)
  await reply.startStream()
  await reply.chunk(opening + says('hello'))
  await mayEnd.promise
  await reply.chunk(ending)
  await reply.finish()
})
const gateway = await startGateway({ config: upstreamConfig(upstream.url) })
afterAll(() => stopAll(gateway, upstream))

async function inputPrice(): Promise<unknown> {
  const response = await fetch(`${gateway.url}/api/catalog`)
  const { data } = (await response.json()) as { data: { id: string; price: { input?: unknown } }[] }
  return data.find(({ id }) => id === chat.model)?.price.input
}

test('B4: a price that changes while an answer runs is not the price of that answer', async () => {
  const before = await inputPrice()
  const response = await ask(gateway, chat, bodyOf(chat, { stream: 'true', max_tokens: '50' }))
  const dearer = readFileSync(gateway.configPath, 'utf8').replaceAll('input: "1.00"', 'input: "9.00"')
  writeFileSync(gateway.configPath, dearer)
  while ((await inputPrice()) === before) await Bun.sleep(5)
  mayEnd.resolve()
  expect(await response.text()).toContain('[DONE]')
  // 3 tokens in at $1.00 a million and 2 out at $2.00: 3 × 1,000 + 2 × 2,000 nano-dollars. At the new price it were 31,000.
  expect(await requestRecords(gateway, 1)).toMatchObject([{ cost: '0.000007' }])
})
