// Providers that send responses nobody asked for, against the whole gateway and two tenants: no answer is the other's.

import { afterAll, expect, test } from 'bun:test'
import { post } from '../parts/ask.ts'
import { startGateway, stopAll } from '../parts/gateway.ts'
import { adminToken } from '../parts/manage.ts'
import { chat } from '../parts/surfaces.ts'
import { connectionsRested, startUpstream, type UpstreamHandler } from '../parts/upstream.ts'
import { runStrays, type StrayResult, strayKinds } from './strays.ts'

const answerTo = (prompt: string): string => {
  const message = { role: 'assistant', content: `answer to ${prompt}` }
  const body = JSON.stringify({
    ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm' },
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
  })
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

/** Answers a call, and answers it once more after so long; undefined = in the same packet. */
const straying =
  (afterMs: number | undefined): UpstreamHandler =>
  async ({ body }, reply) => {
    const { messages } = JSON.parse(new TextDecoder().decode(body)) as { messages: { content: string }[] }
    const answer = answerTo(messages[0]?.content ?? '')
    if (afterMs === undefined) return void (await reply.write(answer + answer))
    await reply.write(answer)
    await Bun.sleep(afterMs)
    await reply.write(answer)
  }

const delays = [undefined, 0, 1, 2, 5, 8]
const upstreams = delays.map((afterMs) => startUpstream(straying(afterMs)))
const gateway = await startGateway({
  config: `
providers:
${upstreams.map(({ url }, i) => `  - { id: p${i}, dialect: openai-chat, base_url: "${url}/v1", api_key: shared }`).join('\n')}
models:
${upstreams.map((_, i) => `  - { id: stray/m${i}, price: { input: "0.01", output: "0.01" }, routes: [{ provider: p${i}, model: m }] }`).join('\n')}
`,
})
afterAll(() => stopAll(gateway, ...upstreams))

// The short version of `npm run besiege -- --strays 6000`.
test('U7: no stray response, whole or streamed, early or late, reaches another tenant', async () => {
  const kinds = Object.keys(strayKinds)
  const results: StrayResult[] = []
  await runStrays(kinds, 40, (result) => void results.push(result))
  expect(results).toHaveLength(kinds.length)
  for (const { kind, own, otherTenants, otherRequests, refused, noticed } of results) {
    // Every fifth call is refused there.
    const expected = kind.includes('refusal') ? 32 : 40
    expect([kind, own, otherTenants, otherRequests, refused]).toEqual([kind, expected, 0, 0, 40 - expected])
    expect([kind, noticed > 0]).toEqual([kind, true])
  }
})

test('U7: the first stray response of a host, which comes while another request runs, is nobody’s answer', async () => {
  const strayed = Promise.withResolvers<void>()
  let first: (() => Promise<void>) | undefined
  const upstream = startUpstream(async ({ body }, reply) => {
    const { messages } = JSON.parse(new TextDecoder().decode(body)) as { messages: { content: string }[] }
    const answer = answerTo(messages[0]?.content ?? '')
    if (first) {
      // It is on its way when the second request arrives.
      await first()
      strayed.resolve()
      return void (await reply.write(answer))
    }
    first = () => reply.write(answer).catch(() => {})
    await reply.write(answer)
  })
  const own = await startGateway({
    config: `
providers: [{ id: late, dialect: openai-chat, base_url: "${upstream.url}/v1", api_key: shared }]
models: [{ id: stray/late, price: free, routes: [{ provider: late, model: m }] }]
`,
  })
  const ask = async (prompt: string) => {
    const response = await post(own, chat.path, { model: 'stray/late', messages: [{ role: 'user', content: prompt }] })
    return await response.text()
  }
  expect(await ask('the first')).toContain('answer to the first')
  // Long enough for a connection of a host that is known.
  await Bun.sleep(60)
  expect(await ask('the second')).toContain('answer to the second')
  await strayed.promise
  await stopAll(own, upstream)
})

const workers = 8
const callsEach = 30

test.each(
  delays.map((afterMs, i) => [afterMs === undefined ? 'in the same packet' : `${afterMs} ms later`, i] as const),
)('U7: a second response %s is nobody’s answer', async (_, i) => {
  const ask = async (prompt: string) => {
    const response = await post(gateway, chat.path, {
      model: `stray/m${i}`,
      messages: [{ role: 'user', content: prompt }],
    })
    const { choices } = (await response.json()) as { choices?: { message: { content: string } }[] }
    return choices?.[0]?.message.content
  }
  const work = async (worker: number) => {
    for (let n = 0; n < callsEach; n++) {
      const prompt = `tenant ${worker % 2}, worker ${worker}, call ${n}`
      expect(await ask(prompt)).toBe(`answer to ${prompt}`)
    }
  }
  await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)))
  const page = await fetch(`${gateway.url}/metrics`, {
    headers: { authorization: `Bearer ${adminToken(gateway.dataFolder)}` },
  })
  const host = new URL(upstreams[i]?.url ?? '').host
  expect(await page.text()).toMatch(new RegExp(`^tollgate_stray_responses_total\\{host="${host}"\\} [1-9]`, 'm'))
  // Each connection carries one request from then on.
  const before = upstreams[i]?.acceptedConnections() ?? 0
  for (let n = 0; n < 3; n++) {
    expect(await ask('again')).toBe('answer to again')
    await connectionsRested()
  }
  expect(upstreams[i]?.acceptedConnections()).toBe(before + 3)
})
