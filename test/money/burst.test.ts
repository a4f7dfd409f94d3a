// Promise M4 from outside: a thousand requests at once on a wallet that can pay for seven. Seven are served, the others
// get 402, and the remainder is exact: with one process, and with three on one PostgreSQL.

import { describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ask } from '../parts/ask.ts'
import { startCrashGateway } from '../parts/crash-gateway.ts'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'
import { bothSurfaces } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { answerWith } from '../parts/upstream-words.ts'
import { openTill } from './till.ts'
import { createWallets } from './wallets.ts'

const requests = 1000
/**
 * 100 tokens in, which is all the model takes, and 50 out: 100 × $0.002 + 50 × $0.009 = $0.65, held and paid. Of the
 * $5.00 of opening credit seven of them leave $0.45.
 */
const price = '{ input: "2000", output: "9000" }'
const size = 'context_tokens: 100, max_output_tokens: 50'
const remainder = 450_000_000n
/** Long enough to be taken for a hundred tokens by any bound. */
const prompt = 'x'.repeat(600)

function answerAll(upstream: Upstream): void {
  upstream.handle(answerWith({ input: 100, output: 50 }))
}

/**
 * Half of them on either surface, half of them streamed. Where a commit takes two seconds, because the machine stood
 * still, the gateway takes nothing new: such a request is sent again.
 */
async function burst(gateways: readonly { readonly url: string; readonly key: string }[]): Promise<number[]> {
  const answers = Array.from({ length: requests }, async (_, at) => {
    const gateway = gateways[at % gateways.length]
    const surface = bothSurfaces[(at >> 1) % 2]
    if (!gateway || !surface) throw new Error('no gateway or surface')
    const body = { messages: [{ role: 'user', content: prompt }], max_tokens: 50, stream: at % 4 < 2 }
    const send = () => ask(gateway, surface, { model: `till/${surface.name}-0`, ...body })
    let response = await send()
    for (; response.status === 503; response = await send()) await response.text().then(() => Bun.sleep(100))
    const text = await response.text()
    if (response.status === 402) expect(text).toMatch(/"reason":"(empty|in_flight)"/)
    return response.status
  })
  return await Promise.all(answers)
}

function expectSeven(statuses: readonly number[]): void {
  const counts = Object.fromEntries([...Map.groupBy(statuses, String)].map(([status, all]) => [status, all.length]))
  expect(counts).toEqual({ 200: 7, 402: requests - 7 })
}

test('on SQLite, in one process', async () => {
  await using till = await openTill({ price, size })
  answerAll(till.upstream)
  expectSeven(await burst([{ url: till.gateway.url, key: till.gateway.key }]))
  expect(await till.wallets.read()).toEqual({ posted: remainder, held: 0n })
  expect(till.chargeCount()).toBe(7)
  expect(till.upstream.calls).toHaveLength(7)
})

const launcher = join(import.meta.dir, '..', '..', 'bin', 'tollgate')

describe.skipIf(findPostgresPrograms() === undefined)('on postgres', () => {
  test('on PostgreSQL, in three processes', async () => {
    const upstream = startUpstream(() => {})
    answerAll(upstream)
    const config = `providers:
  - { id: chatty, dialect: openai-chat, base_url: "${upstream.url}/v1", api_key: secret }
  - { id: messy, dialect: anthropic-messages, base_url: "${upstream.url}", api_key: secret }
models:
  - { id: till/chat-0, price: ${price}, ${size}, routes: [{ provider: chatty, model: up }] }
  - { id: till/messages-0, price: ${price}, ${size}, routes: [{ provider: messy, model: up }] }
`
    using folder = createThrowAwayFolder()
    const configPath = join(folder.path, 'tollgate.yaml')
    writeFileSync(configPath, config)
    const databaseUrl = await (await sharedPostgres()).createDatabase()
    const env = { TOLLGATE_SECRET: 'the-same-secret-for-all-three-of-them-0123456789' }
    const start = (name: string) => {
      const dataFolder = join(folder.path, name)
      mkdirSync(dataFolder)
      return startCrashGateway({ dataFolder, databaseUrl, configPath }, { command: [launcher], env })
    }
    const first = await start('first')
    const all = [first, ...(await Promise.all([start('second'), start('third')]))]
    expectSeven(await burst(all.map(({ url }) => ({ url, key: first.key }))))
    const wallets = createWallets({ url: first.url, dataFolder: join(folder.path, 'first') })
    expect(await wallets.read()).toEqual({ posted: remainder, held: 0n })
    expect(upstream.calls).toHaveLength(7)
    for (const gateway of all) expect(await gateway.stop()).toBe(0)
    upstream.stop()
  })
})
