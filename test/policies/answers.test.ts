// Policies after the call: the answer is held back and judged, and a blocked one is a refusal in the form of its API, which is
// charged and kept in its place.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ask, post } from '../parts/ask.ts'
import { forEachEngine } from '../parts/engines.ts'
import { manage } from '../parts/manage.ts'
import { allSurfaces, chat, inWordsOf, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { dialectOf, usageIn, wantsStream, wordsOf } from '../parts/upstream-words.ts'
import { startTenancy, type Tenancy, type Tenant, until } from '../tenancy/tenancy.ts'
import { type FaultName, faults, policyConfig, startPolicyEndpoint } from './policy-gateway.ts'

const both = [false, true]
const pairs = allSurfaces.flatMap((surface) =>
  allSurfaces.flatMap((host) => both.map((stream) => [surface.name, host.name, stream, surface] as const)),
)
/** What a provider that was asked to leak answers, in pieces that each look harmless. */
const secret = ['the key is sk-', 'live-', '4242', ', keep it']
const blockedWords = 'The policy `judge` of this gateway blocked the answer. Its reason: It contains a live key.'

/** How each surface shows that an answer was refused. */
const refusalForms: Readonly<Record<TestSurface['name'], readonly string[]>> = {
  chat: ['"finish_reason":"content_filter"', `"refusal":"${blockedWords}`, `"content":"${blockedWords}`],
  messages: ['"stop_reason":"end_turn"', '"stop_details":{"type":"refusal"', `"text":"${blockedWords}`],
  responses: [`"refusal":"${blockedWords}`, `"text":"${blockedWords}`, '"status":"completed"'],
  gemini: ['"finishReason":"PROHIBITED_CONTENT"'],
}

forEachEngine((engine) => {
  let upstream: Upstream
  let endpoint: Upstream
  let tenancy: Tenancy
  let tenant: Tenant
  beforeAll(async () => {
    upstream = startUpstream(async (call, reply) => {
      const words = wordsOf(dialectOf(call))
      const text = Buffer.from(call.body).toString()
      const usage = usageIn(dialectOf(call), { input: 100, output: 50 })
      const said = { texts: text.includes('please leak') ? secret : ['a harm', 'less answer'], usage }
      if (!wantsStream(call)) return await reply.json(200, words.whole(said))
      await reply.startStream()
      if (text.includes('please hide')) await reply.chunk(`${words.opening(said)}: sk-live-4242\n\n`)
      const cut = text.includes('then break')
      const [, count = 0] = /write (\d+) pieces/.exec(text) ?? []
      const pieces = Array.from({ length: Number(count) }, () => words.text('word '.repeat(20_000)))
      const texts = [...said.texts.map(words.text), ...pieces].join('')
      await reply.chunk(words.opening(said) + texts + (cut ? '' : words.ending(said)))
      await reply.finish()
    })
    endpoint = startPolicyEndpoint()
    tenancy = await startTenancy({
      engine,
      config: `server: { store_responses: on }\n${policyConfig(upstream.url, endpoint.url, 'answer')}`,
    })
    tenant = await tenancy.tenant({ credit: '10' })
  })
  afterAll(async () => {
    await tenancy[Symbol.asyncDispose]()
    upstream.stop()
    endpoint.stop()
  })

  const say = (surface: TestSurface, model: string, content: string, more: object = {}, headers = {}) => {
    const cap = surface.name === 'messages' ? { max_tokens: 50 } : {}
    const members = { model, ...cap, messages: [{ role: 'user', content }], ...more }
    return ask({ url: tenancy.gateway.url, key: tenant.key }, surface, inWordsOf(surface, members), headers)
  }
  const recordOf = async (response: Response) => {
    const path = `/api/requests/${response.headers.get('x-request-id')}`
    // biome-ignore lint/suspicious/noExplicitAny: as manage answers.
    let record: any
    await until(async () => {
      record = await manage(tenancy.gateway, 'GET', path).catch(() => undefined)
      return record !== undefined
    })
    return record
  }

  describe.each(pairs)('%s of a provider of %s, streamed: %p', (name, host, stream, surface) => {
    test('a blocked answer is a refusal, and is charged', async () => {
      const response = await say(surface, `judge/${host}`, 'please leak', { stream })
      const text = await response.text()
      expect(`${response.status} ${text}`).toStartWith('200 ')
      expect(text).toContain(blockedWords)
      for (const form of refusalForms[name]) expect(text.replaceAll('": ', '":')).toContain(form)
      for (const piece of secret) expect(text).not.toContain(piece)
      const record = await recordOf(response)
      // 100 tokens in at 1 µ$ and 50 out at 2 µ$.
      expect(record).toMatchObject({ status: 200, code: 'POLICY_BLOCKED', charge: { charged: '0.0002' } })
      expect(record.notes).toEqual([expect.stringMatching(/^policy judge blocked the answer in \d+ ms \(live_key: /)])
    })

    test('an allowed answer arrives whole', async () => {
      const response = await say(surface, `judge/${host}`, 'be kind', { stream })
      const text = await response.text()
      expect(`${response.status} ${text}`).toContain('a harm')
      expect(text).toContain('less answer')
      const { notes, charge } = await recordOf(response)
      expect(notes).toEqual([expect.stringMatching(/^policy judge allowed the answer in \d+ ms$/)])
      expect(charge.charged).toBe('0.0002')
    })
  })

  describe.each(allSurfaces.map((surface) => [surface.name, surface] as const))('%s', (name, surface) => {
    test.each(Object.keys(faults) as FaultName[])(
      'no answer slips through if the endpoint fails: %s',
      async (fault) => {
        for (const stream of both) {
          const response = await say(surface, `${fault}/${name}`, 'be kind', { stream })
          const text = await response.text()
          expect(text).toContain(`The policy \`${fault}\` of this gateway could not check the answer: it`)
          for (const piece of ['a harm', 'less answer']) expect(text).not.toContain(piece)
          expect(await recordOf(response)).toMatchObject({ code: 'POLICY_UNAVAILABLE', charge: { charged: '0.0002' } })
        }
      },
    )

    test.each(both)('goes on if the endpoint fails and the policy says open; streamed: %p', async (stream) => {
      const response = await say(surface, `open/${name}`, 'be kind', { stream })
      expect(await response.text()).toContain('less answer')
      // The headers of a stream are sent before its answer is judged.
      expect(response.headers.get('x-tollgate-warnings')).toBe(stream ? null : 'policy_unchecked=open;field=')
      const { notes } = await recordOf(response)
      expect(notes).toEqual([
        expect.stringContaining('policy open gave no verdict on the answer, so it went on unchecked: it '),
      ])
    })

    test('a policy that only watches lets the answer pass', async () => {
      const response = await say(surface, `watch/${name}`, 'please leak', { stream: true })
      expect(await response.text()).toContain(secret[0] ?? '')
      const { notes } = await recordOf(response)
      expect(notes).toEqual([expect.stringMatching(/^policy watch blocked the answer in \d+ ms, only watched/)])
    })

    test('the part of an answer that broke off is judged too', async () => {
      const blocked = await (await say(surface, `judge/${name}`, 'please leak, then break', { stream: true })).text()
      expect(blocked).toContain(blockedWords)
      for (const piece of secret) expect(blocked).not.toContain(piece)
      const allowed = await (await say(surface, `judge/${name}`, 'be kind, then break', { stream: true })).text()
      expect(allowed).toContain('less answer')
      expect(allowed).not.toContain(blockedWords)
    })
  })

  test.each(Object.keys(faults) as FaultName[])(
    'the answer is sent if the endpoint of an open policy fails: %s',
    async (fault) => {
      for (const stream of both) {
        const response = await say(chat, `open-${fault}/chat`, 'be kind', { stream })
        expect(await response.text()).toContain('less answer')
        const { notes } = await recordOf(response)
        expect(notes).toEqual([expect.stringContaining('gave no verdict on the answer, so it went on unchecked: it')])
      }
    },
  )

  test('the endpoint gets the answer', async () => {
    await (await say(chat, 'judge/chat', 'be kind')).text()
    const documents = endpoint.calls.map(({ body }) => JSON.parse(Buffer.from(body).toString()))
    const found = documents.find(({ data }) => data.model === 'judge/chat' && data.surface === 'chat' && !data.stream)
    expect(found).toMatchObject({ type: 'answer.check', data: { workspace: tenant.workspaceId, key: tenant.keyId } })
    const contents = documents.map(({ data }) => data.answer.content)
    expect(contents).toContainEqual([{ type: 'text', text: 'a harmless answer' }])
    expect(contents).toContainEqual([{ type: 'text', text: secret.join('') }])
  })

  // 100 kB each. The hold of an answer grows with it.
  const write = async (surface: TestSurface, pieces: number) => {
    const rich = await tenancy.tenant({ credit: '1000' })
    const cap = surface.name === 'messages' ? { max_tokens: 50 } : {}
    const content = `write ${pieces} pieces`
    const members = { model: 'judge/chat', ...cap, stream: true, messages: [{ role: 'user', content }] }
    const response = await ask({ url: tenancy.gateway.url, key: rich.key }, surface, inWordsOf(surface, members))
    const text = await response.text()
    return { text, record: await recordOf(response) }
  }

  test.each(allSurfaces.map((surface) => [surface.name, surface] as const))(
    'an answer of several megabytes is judged and sent, on %s',
    async (_, surface) => {
      const { text, record } = await write(surface, 50)
      expect(text.length).toBeGreaterThan(5_000_000)
      expect(record).toMatchObject({ status: 200, code: null, charge: { charged: '0.0002' } })
      expect(record.notes).toEqual([expect.stringMatching(/^policy judge allowed the answer/)])
    },
  )

  test('an answer of more than 16 MiB is not judged, and nothing of it is sent', async () => {
    const { text, record } = await write(chat, 180)
    expect(text.length).toBeLessThan(5_000)
    expect(text).toContain('could not check the answer: the answer has more than 16 MiB')
    expect(record).toMatchObject({ status: 200, code: 'POLICY_UNAVAILABLE' })
  })

  test('what a provider writes between records is judged too', async () => {
    const response = await say(chat, 'judge/chat', 'please hide it', { stream: true })
    const text = await response.text()
    expect(text).toContain(blockedWords)
    expect(text).not.toContain('sk-live')
  })

  test.each(['chat', 'messages', 'gemini'])('a compaction that a model of %s writes is judged', async (host) => {
    const compact = (content: string) => {
      const body = { model: `judge/${host}`, input: [{ role: 'user', content }] }
      return post({ url: tenancy.gateway.url, key: tenant.key }, '/v1/responses/compact', body)
    }
    const blocked = await compact('please leak')
    const text = await blocked.text()
    expect(`${blocked.status} ${text}`).toMatch(/^400 .*POLICY_BLOCKED/)
    expect(text).toContain(blockedWords)
    expect(await recordOf(blocked)).toMatchObject({ code: 'POLICY_BLOCKED', charge: { charged: '0.0002' } })
    const allowed = (await (await compact('be kind')).json()) as { output: { encrypted_content: string }[] }
    const summary = allowed.output[0]?.encrypted_content.split('.').at(-1) ?? ''
    expect(Buffer.from(summary, 'base64').toString()).toBe('a harmless answer')
    const document = endpoint.calls.at(-1)?.json() as { data: { other: { text: string }[] } }
    expect(document.data.other.map(({ text: said }) => said)).toContain('a harmless answer')
  })

  test('several answers to one request are refused before they cost anything', async () => {
    const before = upstream.calls.length
    const response = await say(chat, 'judge/chat', 'be kind', { n: 2 })
    expect(`${response.status} ${await response.text()}`).toMatch(/^400 .*INVALID_REQUEST/)
    expect(upstream.calls).toHaveLength(before)
    expect((await say(chat, 'watch/chat', 'be kind', { n: 2 })).status).toBe(200)
  })

  test('retries under an idempotency key and stored responses have the refusal', async () => {
    const first = await say(chat, 'judge/chat', 'please leak', {}, { 'idempotency-key': 'leak' })
    const text = await first.text()
    const again = await say(chat, 'judge/chat', 'please leak', {}, { 'idempotency-key': 'leak' })
    expect(again.headers.get('x-tollgate-replayed')).toBe('true')
    expect(await again.text()).toBe(text)
    expect(text).toContain(blockedWords)
    const headers = { authorization: `Bearer ${tenant.key}` }
    const stored = allSurfaces.find(({ name }) => name === 'responses') ?? chat
    for (const stream of both) {
      const answered = await (await say(stored, 'judge/responses', 'please leak', { store: true, stream })).text()
      const id = /"id":\s*"(resp_[^"]+)"/.exec(answered)?.[1]
      const found = await (await fetch(`${tenancy.gateway.url}/v1/responses/${id}`, { headers })).text()
      expect(found).toContain(blockedWords)
      for (const piece of secret) expect(found).not.toContain(piece)
    }
  })
})
