// Policies before the call: what they are sent, what they refuse, and what happens if they do not answer.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import { ask, post } from '../parts/ask.ts'
import { forEachEngine } from '../parts/engines.ts'
import { adminHeaders, manage } from '../parts/manage.ts'
import { allSurfaces, chat, gemini, inWordsOf, messages, responses, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'
import { startTenancy, type Tenancy, type Tenant, until } from '../tenancy/tenancy.ts'
import { type FaultName, faults, forbidden, policyConfig, policySecret, startPolicyEndpoint } from './policy-gateway.ts'

const both = [false, true]

forEachEngine((engine) => {
  let upstream: Upstream
  let endpoint: Upstream
  let tenancy: Tenancy
  let tenant: Tenant
  beforeAll(async () => {
    upstream = startUpstream(async (call, reply) => {
      if (!call.path.endsWith('/embeddings')) return await answerHello(call, reply)
      await reply.json(200, {
        object: 'list',
        data: [{ object: 'embedding', index: 0, embedding: [1] }],
        usage: { prompt_tokens: 3, total_tokens: 3 },
      })
    })
    endpoint = startPolicyEndpoint()
    tenancy = await startTenancy({ engine, config: policyConfig(upstream.url, endpoint.url, 'request') })
    tenant = await tenancy.tenant({ credit: '10' })
  })
  afterAll(async () => {
    await tenancy[Symbol.asyncDispose]()
    upstream.stop()
    endpoint.stop()
  })

  const asked = () => ({ url: tenancy.gateway.url, key: tenant.key })
  const say = (surface: TestSurface, prefix: string, content: string, more: object = {}) => {
    const cap = surface.name === 'messages' ? { max_tokens: 50 } : {}
    const members = { model: `${prefix}/${surface.name}`, ...cap, messages: [{ role: 'user', content }], ...more }
    return ask(asked(), surface, inWordsOf(surface, members))
  }
  const balance = async () =>
    (await manage(tenancy.gateway, 'GET', `/api/workspaces/${tenant.workspaceId}/wallet`)).balance
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
  const documents = (path: string) =>
    endpoint.calls.filter((call) => call.path === path).map((call) => JSON.parse(Buffer.from(call.body).toString()))

  describe.each(allSurfaces.map((surface) => [surface.name, surface] as const))('%s', (_, surface) => {
    test.each(both)('a block costs nothing, sends nothing and names the policy; streamed: %p', async (stream) => {
      const before = { calls: upstream.calls.length, balance: await balance() }
      const response = await say(surface, 'judge', `the key is ${forbidden}, streamed: ${stream}`, { stream })
      const text = await response.text()
      expect(`${response.status} ${text}`).toStartWith('400 ')
      expect(text).toContain('POLICY_BLOCKED')
      expect(text).toContain(
        'The policy `judge` of this gateway blocked the request. Its reason: It contains a live key.',
      )
      expect(text).toContain('live_key')
      expect(text).not.toContain(forbidden)
      expect({ calls: upstream.calls.length, balance: await balance() }).toEqual(before)
      const record = await recordOf(response)
      expect(record).toMatchObject({ status: 400, code: 'POLICY_BLOCKED' })
      expect(record.notes).toEqual([
        expect.stringMatching(/^policy judge blocked the request in \d+ ms \(live_key: It contains a live key\.\)$/),
      ])
    })

    test.each(both)('an allowed request is sent as the caller wrote it; streamed: %p', async (stream) => {
      const response = await say(surface, 'judge', `a harmless text, streamed: ${stream}`, { stream })
      expect(`${response.status} ${await response.text()}`).toMatch(/^200 .*hel/s)
      expect(Buffer.from(upstream.calls.at(-1)?.body ?? []).toString()).toContain(
        `a harmless text, streamed: ${stream}`,
      )
      expect(upstream.calls.at(-1)?.headers.get('x-evil')).toBeNull()
      expect(response.headers.get('x-tollgate-warnings')).toBeNull()
      const { notes } = await recordOf(response)
      expect(notes).toEqual([expect.stringMatching(/^policy judge allowed the request in \d+ ms$/)])
    })

    test.each(Object.keys(faults) as FaultName[])('is refused if the endpoint fails: %s', async (fault) => {
      const before = { calls: upstream.calls.length, balance: await balance() }
      for (const stream of both) {
        const response = await say(surface, fault, 'a harmless text', { stream })
        const text = await response.text()
        expect(`${response.status} ${text}`).toStartWith('503 ')
        expect(text).toContain('POLICY_UNAVAILABLE')
        expect(text).toContain(`The policy \`${fault}\` of this gateway could not check the request: it`)
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      }
      expect({ calls: upstream.calls.length, balance: await balance() }).toEqual(before)
    })

    test.each(both)(
      'goes on if the endpoint fails and the policy says open, and says so; streamed: %p',
      async (stream) => {
        const response = await say(surface, 'open', 'a harmless text', { stream })
        expect(`${response.status} ${await response.text()}`).toMatch(/^200 .*hel/s)
        expect(response.headers.get('x-tollgate-warnings')).toBe('policy_unchecked=open;field=')
        const { notes, warnings } = await recordOf(response)
        expect(notes).toEqual([
          expect.stringContaining('policy open gave no verdict on the request, so it went on unchecked: it '),
        ])
        expect(warnings).toEqual(['policy_unchecked=open '])
        expect(tenancy.gateway.logged()).toContainEqual(
          expect.objectContaining({
            level: 'warn',
            message: 'a policy gave no verdict',
            policy: 'open',
            on_failure: 'open',
          }),
        )
      },
    )

    test('a policy that only watches refuses nothing and is recorded', async () => {
      const response = await say(surface, 'watch', `the key is ${forbidden}`)
      expect(response.status).toBe(200)
      const { notes } = await recordOf(response)
      expect(notes).toEqual([
        expect.stringMatching(/^policy watch blocked the request in \d+ ms, only watched \(live_key: /),
      ])
    })
  })

  const image = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const url = `data:image/png;base64,${image}`
  const source = { type: 'base64', media_type: 'image/png', data: image }
  const tool = { name: 'read', description: 'Reads.', parameters: { type: 'object', properties: {} } }
  const hidden: readonly [where: string, surface: TestSurface, members: object][] = [
    [
      'a tool result',
      chat,
      {
        messages: [
          { role: 'user', content: 'go' },
          {
            role: 'assistant',
            tool_calls: [{ id: 'c1', type: 'function', function: { name: 'read', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: 'c1', content: forbidden },
        ],
      },
    ],
    [
      'the arguments of a call',
      chat,
      {
        messages: [
          { role: 'user', content: 'go' },
          {
            role: 'assistant',
            tool_calls: [{ id: 'c1', type: 'function', function: { name: 'read', arguments: `{"a":"${forbidden}"}` } }],
          },
          { role: 'tool', tool_call_id: 'c1', content: 'x' },
        ],
      },
    ],
    [
      'the caption of an image',
      chat,
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'image_url', image_url: { url } },
              { type: 'text', text: forbidden },
            ],
          },
        ],
      },
    ],
    [
      'the name of a second speaker',
      chat,
      {
        messages: [
          { role: 'user', name: 'ann', content: 'a' },
          { role: 'user', name: forbidden, content: 'b' },
        ],
      },
    ],
    ['a tool', chat, { tools: [{ type: 'function', function: { ...tool, description: forbidden } }] }],
    ['a predicted output', chat, { prediction: { type: 'content', content: forbidden } }],
    ['metadata', chat, { metadata: { note: forbidden } }],
    ['a stop sequence', chat, { stop: [forbidden] }],
    [
      'a body that cannot be translated',
      chat,
      { messages: [{ role: 'user', content: [{ type: 'unheard_of', words: forbidden }] }] },
    ],
    [
      'a tool result',
      messages,
      {
        messages: [
          { role: 'user', content: 'go' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'read', input: {} }] },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: forbidden }] }],
          },
        ],
      },
    ],
    [
      'the input of a call',
      messages,
      {
        messages: [
          { role: 'user', content: 'go' },
          {
            role: 'assistant',
            content: [{ type: 'tool_use', id: 't1', name: 'read', input: { deep: [{ a: forbidden }] } }],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'x' }] },
        ],
      },
    ],
    [
      'the caption of an image',
      messages,
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'image', source },
              { type: 'text', text: forbidden },
            ],
          },
        ],
      },
    ],
    [
      'the title of a document',
      messages,
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'document', title: forbidden, source: { ...source, media_type: 'application/pdf' } },
              { type: 'text', text: 'x' },
            ],
          },
        ],
      },
    ],
    ['the system prompt', messages, { system: [{ type: 'text', text: forbidden }] }],
    [
      'a tool result',
      responses,
      {
        input: [
          { role: 'user', content: 'go' },
          { type: 'function_call', call_id: 'c1', name: 'read', arguments: '{}' },
          { type: 'function_call_output', call_id: 'c1', output: forbidden },
        ],
      },
    ],
    [
      'the caption of an image',
      responses,
      {
        input: [
          {
            role: 'user',
            content: [
              { type: 'input_image', image_url: url },
              { type: 'input_text', text: forbidden },
            ],
          },
        ],
      },
    ],
    ['the instructions', responses, { instructions: forbidden }],
    [
      'a tool result',
      gemini,
      {
        contents: [
          { role: 'user', parts: [{ text: 'go' }] },
          { role: 'model', parts: [{ functionCall: { name: 'read', args: {} } }] },
          { role: 'user', parts: [{ functionResponse: { name: 'read', response: { output: forbidden } } }] },
        ],
      },
    ],
    [
      'the caption of an image',
      gemini,
      {
        contents: [
          { role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: image } }, { text: forbidden }] },
        ],
      },
    ],
    ['the system instruction', gemini, { systemInstruction: { parts: [{ text: forbidden }] } }],
  ]
  test.each(hidden.map(([where, surface, members]) => [where, surface.name, surface, members] as const))(
    'a secret in %s is found on %s',
    async (_, name, surface, members) => {
      const usual: Record<string, unknown> = JSON.parse(
        `{${Object.entries(surface.members)
          .map(([key, value]) => `"${key}":${value}`)
          .join()}}`,
      )
      const response = await ask(asked(), surface, { ...usual, model: `judge/${name}`, ...members })
      expect(`${response.status} ${await response.text()}`).toMatch(/^400 .*POLICY_BLOCKED/)
    },
  )

  test.each(Object.keys(faults) as FaultName[])(
    'goes on if the endpoint of an open policy fails: %s',
    async (fault) => {
      for (const stream of both) {
        const members = {
          model: `open-${fault}/chat`,
          stream,
          messages: [{ role: 'user', content: 'a harmless text' }],
        }
        const response = await ask(asked(), chat, members)
        expect(`${response.status} ${await response.text()}`).toMatch(/^200 .*hel/s)
        expect(response.headers.get('x-tollgate-warnings')).toBe(`policy_unchecked=open-${fault};field=`)
      }
    },
  )

  test('embeddings and token counts are checked too', async () => {
    const blocked = await post(asked(), '/v1/embeddings', { model: 'judge/embed', input: ['fine', forbidden] })
    expect(`${blocked.status} ${await blocked.text()}`).toMatch(/^400 .*POLICY_BLOCKED/)
    const allowed = await post(asked(), '/v1/embeddings', { model: 'judge/embed', input: ['fine', 'too'] })
    expect(allowed.status).toBe(200)
    expect(documents('/judge').at(-1).data).toMatchObject({ surface: 'chat', inputs: ['fine', 'too'], other: [] })
    const before = upstream.calls.length
    const count = { model: 'judge/messages', messages: [{ role: 'user', content: forbidden }] }
    const counted = await post(asked(), '/v1/messages/count_tokens', count, { 'anthropic-version': '2023-06-01' })
    expect(`${counted.status} ${await counted.text()}`).toMatch(/^400 .*POLICY_BLOCKED/)
    expect(upstream.calls).toHaveLength(before)
  })

  test('the endpoint gets a signed document, without headers or keys of the client', async () => {
    const content = [
      { type: 'text', text: 'look at this' },
      { type: 'image_url', image_url: { url } },
    ]
    const response = await ask(
      asked(),
      chat,
      {
        model: 'judge/chat',
        user: 'ann',
        messages: [
          { role: 'system', content: 'Be kind.' },
          { role: 'user', content },
        ],
      },
      { 'x-private': 'of the client' },
    )
    expect(response.status).toBe(200)
    const call = endpoint.calls.at(-1)
    const text = Buffer.from(call?.body ?? []).toString()
    const verified = new Webhook(policySecret).verify(text, Object.fromEntries(call?.headers ?? []))
    expect(verified).toEqual({
      type: 'request.check',
      id: response.headers.get('x-request-id'),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      data: {
        workspace: tenant.workspaceId,
        project: tenant.projectId,
        key: tenant.keyId,
        end_user: expect.any(String),
        surface: 'chat',
        model: 'judge/chat',
        stream: false,
        conversation: {
          system: [{ type: 'text', text: 'Be kind.' }],
          turns: [
            {
              role: 'user',
              content: [
                { type: 'text', text: 'look at this' },
                // Of the 70 bytes of the image, by sha256sum.
                {
                  type: 'image',
                  media_type: 'image/png',
                  bytes: Buffer.from(image, 'base64').length,
                  sha256: new Bun.CryptoHasher('sha256').update(Buffer.from(image, 'base64')).digest('hex'),
                },
              ],
            },
          ],
          tools: [],
          user: 'ann',
        },
        other: [],
      },
    })
    expect(() =>
      new Webhook(`whsec_${Buffer.alloc(32, 8).toString('base64')}`).verify(
        text,
        Object.fromEntries(call?.headers ?? []),
      ),
    ).toThrow()
    const headers = JSON.stringify(Object.fromEntries(call?.headers ?? []))
    for (const secret of [tenant.key, 'of the client', 'k-chat']) expect(headers + text).not.toContain(secret)
  })

  test('a verdict is remembered by content', async () => {
    const text = 'the same text twice'
    await (await say(chat, 'judge', text)).text()
    const calls = endpoint.calls.length
    await (await say(chat, 'judge', text)).text()
    expect(endpoint.calls).toHaveLength(calls)
    await (await say(chat, 'judge', `${text}, changed`)).text()
    expect(endpoint.calls).toHaveLength(calls + 1)
  })

  test('a blocked request frees its idempotency key', async () => {
    const body = { model: 'judge/chat', messages: [{ role: 'user', content: `${forbidden} once` }] }
    const once = async (sent: object) => (await ask(asked(), chat, sent, { 'idempotency-key': 'a-key' })).status
    expect(await once(body)).toBe(400)
    // The key is freed behind the answer: until then it is 429.
    let status = 429
    const other = { ...body, messages: [{ role: 'user', content: 'now without it' }] }
    await until(async () => {
      status = await once(other)
      return status !== 429 && status !== 400
    })
    expect(status).toBe(200)
  })

  test('the metrics count every verdict', async () => {
    const headers = adminHeaders(tenancy.gateway.dataFolder)
    const text = await (await fetch(`${tenancy.gateway.url}/metrics`, { headers })).text()
    expect(text).toMatch(/tollgate_policy_checks_total\{policy="judge",moment="request",outcome="blocked"\} \d+/)
    expect(text).toMatch(/tollgate_policy_checks_total\{policy="crash",moment="request",outcome="failed"\} \d+/)
    expect(text).toMatch(/tollgate_policy_check_seconds_count\{policy="judge"\} \d+/)
  })

  test('the configuration names the policies, and a change is in effect for the next request', async () => {
    const { data } = await manage(tenancy.gateway, 'GET', '/api/config')
    expect(data).toContainEqual({
      name: 'policies.open',
      value: `request, enforce, fails open, ${endpoint.url}`,
      source: expect.stringMatching(/^tollgate\.yaml:\d+$/),
    })
    const config = policyConfig(upstream.url, endpoint.url, 'request')
    writeFileSync(tenancy.gateway.configPath, config.slice(0, config.indexOf('policies:')))
    await until(async () => (await say(chat, 'judge', forbidden)).status === 200)
    writeFileSync(tenancy.gateway.configPath, config)
    await until(async () => (await say(chat, 'judge', forbidden)).status === 400)
  })
})
