// A provider as a separate process: does what the prompt orders, calls a tool where one is offered, and at times goes
// wrong in one of the ways that test/faults knows. Prints its address, then every second what it has done.

import { parseArgs } from 'node:util'
import { callOpening, chatBytes, wholeCall } from '../conformance/replies/chat-bytes.ts'
import { callBlock, messagesBytes } from '../conformance/replies/messages-bytes.ts'
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

const input = '{"at":"the sea"}'
const toolReplies = {
  chat: chatBytes({
    deltas: [callOpening(0, 'call_1', 'look', input)],
    message: { tool_calls: [wholeCall('call_1', 'look', input)] },
    finish: 'tool_calls',
    usage: { prompt_tokens: 30, completion_tokens: 12, total_tokens: 42 },
  }),
  messages: messagesBytes({
    blocks: [callBlock('toolu_1', 'look', input)],
    stop: 'tool_use',
    usage: { input_tokens: 30, output_tokens: 12 },
  }),
}

async function answerWithTool(call: UpstreamCall, reply: UpstreamReply, streams: boolean): Promise<void> {
  const { whole, stream } = toolReplies[call.path.endsWith('/chat/completions') ? 'chat' : 'messages']
  if (!streams) return await reply.send(200, { 'content-type': 'application/json' }, whole)
  await reply.startStream()
  await reply.chunk(stream)
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
