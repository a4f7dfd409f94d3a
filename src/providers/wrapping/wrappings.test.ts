import { describe, expect, test } from 'bun:test'
import { chunkFrame, eventFrame } from '../../../test/parts/event-frames.ts'
import { faultFromBody } from '../../dialects/canonical/faults.ts'
import { classifyFault } from '../../routing/faults.ts'
import type { Endpoint, UpstreamResponse } from '../provider.ts'
import { type EventFrame, EventFrameReader, FrameFault, invokeModel } from './invoke-model.ts'
import { rawPredict, vertexTiers } from './wrappings.ts'

const endpoint: Endpoint = {
  dialect: 'anthropic-messages',
  baseUrl: 'https://host.example',
  auth: 'none',
  betas: ['context-1m-2025-08-07'],
}
const headers = {
  'anthropic-version': '2023-06-01',
  'anthropic-beta': 'context-1m-2025-08-07, tomorrow-2027-01-01',
  'x-other': '1',
}
const encode = (text: string) => new TextEncoder().encode(text)
const call = (text: string, path = '/v1/messages') => ({ path, headers, body: encode(text) })
const textOf = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes)

describe('Gemini on Vertex AI', () => {
  const path = '/models/gemini-3.6-flash:generateContent'
  const shared = 'x-vertex-ai-llm-shared-request-type'
  const cases: readonly (readonly [body: string, sent: string, more: Readonly<Record<string, string>>])[] = [
    ['{"contents":[ ],"serviceTier":"flex"}', '{"contents":[ ]}', { [shared]: 'flex' }],
    ['{ "serviceTier" : "priority", "contents":[]}', '{ "contents":[]}', { [shared]: 'priority' }],
    ['{"serviceTier":"dedicated"}', '{}', { 'x-vertex-ai-llm-request-type': 'dedicated' }],
    // Only the member of the request itself.
    ['{"contents":[{"serviceTier":"flex"}]}', '{"contents":[{"serviceTier":"flex"}]}', {}],
    ['{"contents":["serviceTier"]}', '{"contents":["serviceTier"]}', {}],
    // Nothing of a caller gets into a header that would end it.
    ['{"serviceTier":"a\\r\\nx-evil: 1","contents":[]}', '{"contents":[]}', {}],
    ['{"serviceTier":7,"contents":[]}', '{"contents":[]}', {}],
    ['not JSON "serviceTier"', 'not JSON "serviceTier"', {}],
  ]
  test.each(cases)('the service tier of %s is in a header', (body, sent, more) => {
    const wrapped = vertexTiers.wrap({ ...call(body, path), headers: { 'x-other': '1' } }, endpoint)
    expect([textOf(wrapped?.body), wrapped?.path, wrapped?.headers]).toEqual([sent, path, { 'x-other': '1', ...more }])
  })
})

describe('InvokeModel', () => {
  test('has the model and whether to stream in its path, the rest as it was', () => {
    const body = '{"model":"anthropic.claude-v1:0", "messages":[ {"x":1.0} ],"stream":true,"max_tokens":5}'
    const wrapped = invokeModel.wrap(call(body), endpoint)
    expect(wrapped?.path).toBe('/model/anthropic.claude-v1%3A0/invoke-with-response-stream')
    expect(textOf(wrapped?.body)).toBe(
      '{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["context-1m-2025-08-07"],"max_tokens":5,"messages":[ {"x":1.0} ]}',
    )
    expect(wrapped?.headers).toEqual({ 'x-other': '1', accept: 'application/vnd.amazon.eventstream' })
  })

  test('pitfall 8: a member goes with the flag that unlocks it, and stays away with one that the host does not know', () => {
    const management = '"context_management":{"edits":[]}'
    const body = `{"model":"m",${management},"diagnostics":{"previous_message_id":null},"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}, "display":"omitted"},"output_config":{"task_budget":{"type":"tokens","total":9}},"messages":[]}`
    const betas = ['context-management-2025-06-27', 'thinking-binding-controls-2026-08-01', 'task-budgets-2026-03-13']
    const asked = { ...call(body), headers: { 'anthropic-beta': betas.join(',') } }
    const bodyAt = (known: readonly string[]) => textOf(invokeModel.wrap(asked, { ...endpoint, betas: known })?.body)
    const head = (flags: readonly string[]) => `"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["${flags}"]`
    expect(bodyAt(betas.slice(0, 1))).toBe(
      `{${head(betas.slice(0, 1))},${management},"thinking":{"type":"adaptive","display":"omitted"},"output_config":{},"messages":[]}`,
    )
    expect(bodyAt([])).toBe(
      '{"anthropic_version":"bedrock-2023-05-31","thinking":{"type":"adaptive","display":"omitted"},"output_config":{},"messages":[]}',
    )
    expect(JSON.parse(bodyAt(betas))).toMatchObject({
      anthropic_beta: betas,
      context_management: { edits: [] },
      thinking: { block_binding: { prefix_mismatch_behavior: 'drop_block' } },
      output_config: { task_budget: { total: 9 } },
    })
  })

  test('pitfall 8: the same goes for members of tools, of which the rest stays as it is', () => {
    const schema = '{"type" : "object", "properties":{"defer_loading":{"type":"string"}}}'
    const tools = (locked: string) =>
      `"tools":[{"name":"f","input_schema":${schema}${locked}},{ "type":"bash_20250124" ,"name":"bash"}]`
    const body = `{"model":"m",${tools(',"eager_input_streaming":true,"defer_loading":true')},"messages":[]}`
    const bodyAt = (flag: string) =>
      textOf(
        rawPredict.wrap({ ...call(body), headers: { 'anthropic-beta': flag } }, { ...endpoint, betas: [flag] })?.body,
      )
    const rest = (locked: string) => `${tools(locked)},"messages":[]}`
    expect(bodyAt('none-2026-01-01')).toEndWith(rest(''))
    expect(bodyAt('tool-search-tool-2025-10-19')).toEndWith(rest(',"defer_loading":true'))
    expect(bodyAt('fine-grained-tool-streaming-2025-05-14')).toEndWith(rest(',"eager_input_streaming":true'))
  })

  test('pitfall 150: every flag that the host does not know is named, and a known one goes under the host’s name', () => {
    const host = {
      ...endpoint,
      betas: ['a-2026-01-01', 'b-2026-01-01'],
      betaNames: { 'bee-2026-02-02': 'b-2026-01-01' },
    }
    const flags = 'a-2026-01-01, x/y-2026-03-03,bee-2026-02-02,,b-2026-01-01,z-2026-04-04'
    const asked = { ...call('{"model":"m","messages":[]}'), headers: { 'anthropic-beta': flags } }
    const warnings = [
      { code: 'beta_dropped', field: '/anthropic-beta/x~1y-2026-03-03' },
      { code: 'beta_dropped', field: '/anthropic-beta/z-2026-04-04' },
    ]
    const invoked = invokeModel.wrap(asked, host)
    expect(JSON.parse(textOf(invoked?.body)).anthropic_beta).toEqual(['a-2026-01-01', 'b-2026-01-01'])
    expect(invoked?.warnings).toEqual(warnings)
    const predicted = rawPredict.wrap(asked, host)
    expect(predicted?.headers['anthropic-beta']).toBe('a-2026-01-01,b-2026-01-01')
    expect(predicted?.warnings).toEqual(warnings)
  })

  test('pitfall 8: every member that is left out with its flag is named, unless it asks for nothing', () => {
    const body = {
      ...{ model: 'm', context_management: { edits: [] }, diagnostics: null, speed: 'fast' },
      ...{ thinking: { type: 'adaptive', block_binding: {} }, output_config: { task_budget: { total: 9 } } },
      system: [{ type: 'text', text: 'S', cache_control: { type: 'ephemeral', scope: 'global' } }],
      tools: [
        { name: 'f', input_schema: {}, defer_loading: false },
        { name: 'g', input_schema: {}, defer_loading: true, eager_input_streaming: true },
        { name: 'h', input_schema: {}, defer_loading: true, cache_control: { scope: 'global', type: 'ephemeral' } },
      ],
      messages: [],
    }
    const wrapped = invokeModel.wrap({ ...call(JSON.stringify(body)), headers: {} }, endpoint)
    expect(JSON.parse(textOf(wrapped?.body))).toEqual({
      anthropic_version: 'bedrock-2023-05-31',
      thinking: { type: 'adaptive' },
      output_config: {},
      system: [{ type: 'text', text: 'S', cache_control: { type: 'ephemeral' } }],
      tools: [
        { name: 'f', input_schema: {} },
        { name: 'g', input_schema: {} },
        { name: 'h', input_schema: {}, cache_control: { type: 'ephemeral' } },
      ],
      messages: [],
    })
    expect(wrapped?.warnings).toEqual([
      { code: 'context_management_dropped', field: '/context_management' },
      { code: 'speed_dropped', field: '/speed' },
      { code: 'block_binding_dropped', field: '/thinking/block_binding' },
      { code: 'task_budget_dropped', field: '/output_config/task_budget' },
      { code: 'scope_dropped', field: '/system/0/cache_control/scope' },
      { code: 'defer_loading_dropped', field: '/tools/1/defer_loading' },
      { code: 'eager_input_streaming_dropped', field: '/tools/1/eager_input_streaming' },
    ])
  })

  test('pitfall 8: what needs no flag, or promises something, goes as it is', () => {
    const rest = '"output_config":{"effort":"high"},"mcp_servers":[{}],"tomorrow":1,"messages":[]'
    const wrapped = rawPredict.wrap({ ...call(`{"model":"m",${rest}}`), headers: {} }, endpoint)
    expect(textOf(wrapped?.body)).toBe(`{"anthropic_version":"vertex-2023-10-16",${rest}}`)
  })

  test('asks for a whole reply at another path', () => {
    const wrapped = invokeModel.wrap({ ...call('{"model":"m","messages":[]}'), headers: {} }, endpoint)
    expect(wrapped?.path).toBe('/model/m/invoke')
    expect(textOf(wrapped?.body)).toBe('{"anthropic_version":"bedrock-2023-05-31","messages":[]}')
  })

  const called = (name: string) => ({ role: 'assistant', content: [{ type: 'tool_use', id: 't', name, input: {} }] })
  const answered = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: '4' }] }
  const history = [
    { role: 'user', content: 'hi' },
    called('look'),
    answered,
    called('go'),
    answered,
    called('look'),
    answered,
  ]
  const stub = (name: string) => ({ name, input_schema: { type: 'object' } })

  test.each([
    ['no tools', {}],
    ['an empty list', { tools: [] }],
    ['null', { tools: null, tool_choice: { type: 'auto' } }],
  ])(
    'pitfall 170, 171: tools in the history are defined where the request has %s, and none may be called',
    (_, members) => {
      const body = JSON.stringify({ model: 'm', ...members, messages: history })
      const wrapped = invokeModel.wrap({ ...call(body), headers: {} }, endpoint)
      expect(JSON.parse(textOf(wrapped?.body))).toEqual({
        anthropic_version: 'bedrock-2023-05-31',
        tools: [stub('look'), stub('go')],
        tool_choice: { type: 'none' },
        messages: history,
      })
      expect(wrapped?.warnings).toEqual([])
    },
  )

  test.each([
    ['offers tools', { tools: [stub('other')], messages: history }],
    ['demands a call without tools, for the host to refuse', { tool_choice: { type: 'any' }, messages: history }],
    ['only speaks of them', { messages: [{ role: 'user', content: 'a "tool_use" block' }] }],
  ])('pitfall 170: a request that %s is left as it is', (_, members) => {
    const wrapped = invokeModel.wrap({ ...call(JSON.stringify({ model: 'm', ...members })), headers: {} }, endpoint)
    expect(JSON.parse(textOf(wrapped?.body))).toEqual({ anthropic_version: 'bedrock-2023-05-31', ...members })
  })

  test('has no call that counts tokens', () => {
    expect(invokeModel.wrap(call('{"model":"m","messages":[]}', '/v1/messages/count_tokens'), endpoint)).toBeUndefined()
  })

  const textIn = async (response: UpstreamResponse) => new TextDecoder().decode(await response.bytes())
  const framed = (...frames: readonly Uint8Array[]) =>
    new Response(Buffer.concat(frames), { headers: { 'content-type': 'application/vnd.amazon.eventstream' } })

  test('its frames become the events inside them', async () => {
    const events = [
      { type: 'message_start', message: { id: 'msg_1' } },
      { type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 1 } },
    ]
    const response = invokeModel.unwrap(framed(...events.map(chunkFrame)))
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(await textIn(response)).toBe(
      events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
    )
  })

  test('a stand-in for the host that puts the event into the frame as it is is understood', async () => {
    const frame = eventFrame({ ':message-type': 'event', ':event-type': 'chunk' }, '{"type":"ping"}')
    const response = invokeModel.unwrap(framed(frame, eventFrame({ ':message-type': 'event' }, '{}')))
    expect(await textIn(response)).toBe('event: ping\ndata: {"type":"ping"}\n\n')
  })

  test.each([
    ['throttlingException', 'rate_limit_error'],
    ['serviceUnavailableException', 'overloaded_error'],
    ['validationException', 'invalid_request_error'],
    ['modelStreamErrorException', 'api_error'],
  ])('pitfall 143: an exception in a frame is an error event: %s is a %s', async (exception, type) => {
    const frame = eventFrame({ ':message-type': 'exception', ':exception-type': exception }, '{"message":"oops"}')
    const response = invokeModel.unwrap(framed(frame))
    expect(await textIn(response)).toBe(
      `event: error\ndata: {"type":"error","error":{"type":"${type}","message":"oops"}}\n\n`,
    )
  })

  test('an error frame is recognised by its headers', async () => {
    const frame = eventFrame({ ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'no' }, '')
    const response = invokeModel.unwrap(framed(frame))
    expect(await textIn(response)).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"no"}}\n\n',
    )
  })

  test('a stream that ends inside a frame is broken', async () => {
    const frame = chunkFrame({ type: 'ping' })
    const response = invokeModel.unwrap(framed(frame.subarray(0, frame.length - 3)))
    const error = await textIn(response).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'BROKEN_FRAME' })
  })

  test.each([
    ['ThrottlingException:http://internal.amazon.com/', 429, 'rate_limit_error'],
    ['AccessDeniedException', 403, 'permission_error'],
    ['', 500, 'api_error'],
  ])('a refusal is translated into the dialect: %p', async (errorType, status, type) => {
    const given = Response.json({ message: 'no' }, { status, headers: { 'x-amzn-errortype': errorType } })
    const response = invokeModel.unwrap(given)
    expect(response.status).toBe(status)
    expect(JSON.parse(await textIn(response))).toEqual({ type: 'error', error: { type, message: 'no' } })
  })

  const unknownOperation = 'com.amazon.coral.service#UnknownOperationException'
  test.each([
    ['', '', 'failing'],
    ['', '{}', 'failing'],
    ['', '{"message":null}', 'failing'],
    ['UnknownOperationException', '{}', 'failing'],
    ['', JSON.stringify({ __type: unknownOperation }), 'failing'],
    ['ResourceNotFoundException:http://internal.amazon.com/', '{}', 'does not know the model'],
    ['ResourceNotFoundException', '{"message":"The resource was not found."}', 'does not know the model'],
    ['', '{"__type":"ResourceNotFoundException","message":"no"}', 'does not know the model'],
  ])('a 404 is about the route, not about the request: %p %p', async (errorType, body, expected) => {
    const given = new Response(body, { status: 404, headers: { 'x-amzn-errortype': errorType } })
    const response = invokeModel.unwrap(given)
    const fault = faultFromBody(response.status, response.headers, await textIn(response))
    expect([response.status, classifyFault(fault).class]).toEqual([404, expected as never])
  })

  test.each([
    ['ServiceQuotaExceededException', 400, 429, 'rate_limit_error'],
    ['ModelErrorException', 424, 500, 'api_error'],
  ])('a %s is no fault of the caller, whatever its status', async (errorType, status, mapped, type) => {
    const given = Response.json({ message: 'no' }, { status, headers: { 'x-amzn-errortype': errorType } })
    const response = invokeModel.unwrap(given)
    expect(response.status).toBe(mapped)
    expect(JSON.parse(await textIn(response))).toEqual({ type: 'error', error: { type, message: 'no' } })
  })
})

describe('rawPredict', () => {
  test('pitfall 172: the model stands in the path, the version in the body', () => {
    const wrapped = rawPredict.wrap(call('{"model":"claude@1","stream":true,"messages":[1],"system":"S"}'), endpoint)
    expect(wrapped?.path).toBe('/models/claude%401:streamRawPredict')
    expect(textOf(wrapped?.body)).toBe(
      '{"anthropic_version":"vertex-2023-10-16","stream":true,"system":"S","messages":[1]}',
    )
    expect(wrapped?.headers).toEqual({ 'x-other': '1', 'anthropic-beta': 'context-1m-2025-08-07' })
  })

  test('pitfall 6: what grows stands last, whatever the caller’s order', () => {
    const wrapped = rawPredict.wrap(call('{"messages":[1],"model":"m","tools":[2],"system":"S"}'), endpoint)
    expect(wrapped?.path).toBe('/models/m:rawPredict')
    expect(textOf(wrapped?.body)).toBe(
      '{"anthropic_version":"vertex-2023-10-16","tools":[2],"system":"S","messages":[1]}',
    )
  })

  test('counts tokens at another path, with the model in the body', () => {
    const wrapped = rawPredict.wrap(call('{"model":"m","messages":[1]}', '/v1/messages/count_tokens'), endpoint)
    expect(wrapped?.path).toBe('/models/count-tokens:rawPredict')
    expect(textOf(wrapped?.body)).toBe('{"anthropic_version":"vertex-2023-10-16","model":"m","messages":[1]}')
  })

  test('replies pass as they are', () => {
    const response = new Response('x')
    expect(rawPredict.unwrap(response)).toBe(response)
  })
})

const shown = (frames: readonly EventFrame[]) =>
  frames.map(({ headers, payload }) => [Object.fromEntries(headers), Buffer.from(payload).toString()])

// Encoded messages that AWS's own libraries are tested with.
test.each([
  ['a payload alone', '0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936', [{}, "{'foo':'bar'}"]],
  [
    'a header',
    '0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1',
    [{ 'content-type': 'application/json' }, "{'foo':'bar'}"],
  ],
  ['nothing', '000000100000000005c248eb7d98c8ff', [{}, '']],
] as const)('reads AWS’s example of %s', (_, hex, expected) => {
  expect(shown(new EventFrameReader().push(Buffer.from(hex, 'hex')))).toEqual([[...expected]])
})

const frames = Buffer.concat([eventFrame({ ':event-type': 'chunk' }, '{"a":1}'), eventFrame({}, 'zwei')])
const both = [
  [{ ':event-type': 'chunk' }, '{"a":1}'],
  [{}, 'zwei'],
]

test('reads the same wherever the bytes are cut', () => {
  for (let cut = 0; cut <= frames.length; cut++) {
    const reader = new EventFrameReader()
    const read = [...reader.push(frames.subarray(0, cut)), ...reader.push(frames.subarray(cut))]
    expect(shown(read)).toEqual(both)
    expect(reader.isBetweenFrames).toBe(true)
  }
})

test('knows that a frame is not complete', () => {
  const reader = new EventFrameReader()
  reader.push(frames.subarray(0, frames.length - 1))
  expect(reader.isBetweenFrames).toBe(false)
})

test('one changed byte anywhere is found', () => {
  for (let at = 0; at < frames.length; at++) {
    const damaged = Buffer.from(frames)
    damaged[at] = (damaged[at] as number) ^ 0x01
    const reader = new EventFrameReader()
    let isFound = false
    try {
      reader.push(damaged)
      // A length that was made larger asks for bytes that never come.
      isFound = !reader.isBetweenFrames
    } catch (error) {
      isFound = error instanceof FrameFault
    }
    expect(isFound).toBe(true)
  }
})

test('skips headers of other types', () => {
  // true, a byte of 8 bits, and a time of 64 bits, in front of a text.
  const headers = Buffer.concat([
    Buffer.from([1, 0x61, 0]),
    Buffer.from([1, 0x62, 2, 9]),
    Buffer.from([1, 0x63, 8, 0, 0, 0, 0, 0, 0, 0, 1]),
    Buffer.from([1, 0x64, 7, 0, 1, 0x78]),
  ])
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(12 + headers.length + 4, 0)
  prelude.writeUInt32BE(headers.length, 4)
  prelude.writeUInt32BE(Bun.hash.crc32(prelude.subarray(0, 8)), 8)
  const before = Buffer.concat([prelude, headers])
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(Bun.hash.crc32(before))
  expect(shown(new EventFrameReader().push(Buffer.concat([before, crc])))).toEqual([[{ d: 'x' }, '']])
})
