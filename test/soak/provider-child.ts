// A provider as a process of its own: does what the prompt orders, calls a tool where one is offered, and at times goes
// wrong in one of the ways that test/faults knows. Prints its address, then every second what it has done.

import { parseArgs } from 'node:util'
import { misbehaviours } from '../faults/misbehave.ts'
import { orderedWords, orderOf } from '../parts/crash-upstream.ts'
import { startUpstream, type UpstreamCall, type UpstreamReply } from '../parts/upstream.ts'
import type { ProviderCounts } from './counts.ts'

/** Not among them: refused keys and empty accounts, for which a route is rightly left alone for minutes. */
const faultNames = [
  'reset',
  'hang before headers',
  'hang after headers',
  'slow drip',
  '400',
  '408',
  '429',
  '500',
  '502',
  '503',
  '529',
  'redirect',
  '200 with error event',
  '200 with HTML',
  'empty 200',
  'truncated JSON',
  'cut before content',
  'cut after content',
  'oversized event',
  'gzip body',
]

const { values } = parseArgs({ options: { 'fault-share': { type: 'string', default: '0.05' } } })
const faultShare = Number(values['fault-share'])
let calls = 0
let faults = 0

function chatTool(streams: boolean): string {
  const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"the sea"}' } }
  const ids = { id: 'c', model: 'up' }
  const usage = { prompt_tokens: 30, completion_tokens: 12, total_tokens: 42 }
  if (!streams) {
    const message = { role: 'assistant', content: null, tool_calls: [call] }
    const choices = [{ index: 0, message, finish_reason: 'tool_calls' }]
    return JSON.stringify({ ...ids, object: 'chat.completion', choices, usage })
  }
  const chunk = (delta: object, finish: string | null) => ({
    ...ids,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: finish }],
  })
  const records = [
    chunk({ role: 'assistant', content: null, tool_calls: [{ index: 0, ...call }] }, null),
    chunk({}, 'tool_calls'),
    { ...ids, object: 'chat.completion.chunk', choices: [], usage },
  ]
  return `${records.map((record) => `data: ${JSON.stringify(record)}\n\n`).join('')}data: [DONE]\n\n`
}

function messagesTool(streams: boolean): string {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'up', stop_reason: null }
  const block = { type: 'tool_use', id: 'toolu_1', name: 'look' }
  if (!streams) {
    const content = [{ ...block, input: { at: 'the sea' } }]
    const usage = { input_tokens: 30, output_tokens: 12 }
    return JSON.stringify({ ...message, content, stop_reason: 'tool_use', usage })
  }
  const delta = { type: 'input_json_delta', partial_json: '{"at":"the sea"}' }
  const events: readonly (readonly [type: string, fields: object])[] = [
    ['message_start', { message: { ...message, content: [], usage: { input_tokens: 30, output_tokens: 1 } } }],
    ['content_block_start', { index: 0, content_block: { ...block, input: {} } }],
    ['content_block_delta', { index: 0, delta }],
    ['content_block_stop', { index: 0 }],
    ['message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 12 } }],
    ['message_stop', {}],
  ]
  return events.map(([type, fields]) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`).join('')
}

async function answerWithTool(call: UpstreamCall, reply: UpstreamReply, streams: boolean): Promise<void> {
  const text = call.path.endsWith('/chat/completions') ? chatTool(streams) : messagesTool(streams)
  if (!streams) return await reply.send(200, { 'content-type': 'application/json' }, text)
  await reply.startStream()
  await reply.chunk(text)
  await reply.finish()
}

async function answer(call: UpstreamCall, reply: UpstreamReply, streams: boolean): Promise<void> {
  const order = orderOf(call)
  const words = orderedWords(call, order)
  if (streams) await reply.startStream()
  if (streams) await reply.chunk(words.opening)
  for (let piece = 0; piece < order.pieces && !call.isClosed(); piece++) {
    if (streams) await reply.chunk(words.says(`word${piece} `))
    await Bun.sleep(order.pauseMs)
  }
  if (!streams) return await reply.send(200, { 'content-type': 'application/json' }, words.whole)
  await reply.chunk(words.ending)
  await reply.finish()
}

const upstream = startUpstream(async (call, reply) => {
  calls++
  // It keeps what it was sent for tests that look at it; here that would be the leak we are looking for.
  upstream.calls.length = 0
  const { stream, tools } = call.json()
  const streams = stream === true
  const misbehave = misbehaviours[faultNames[Math.floor(Math.random() * faultNames.length)] ?? '']
  if (misbehave && Math.random() < faultShare) {
    faults++
    await misbehave({ call, reply, streams })
  } else if (Array.isArray(tools)) await answerWithTool(call, reply, streams)
  else await answer(call, reply, streams)
})
console.log(upstream.url)
setInterval(() => console.log(JSON.stringify({ calls, faults } satisfies ProviderCounts)), 1000)
