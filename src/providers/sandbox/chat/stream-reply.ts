// A reply as `chat.completion.chunk` records. The order is the one strict clients insist on: role first, calls one
// after another with dense indexes and their identity only once, one finish chunk, usage if asked for, `[DONE]`.

import type { Reply, ToolCall } from '../reply.ts'
import { splitFragments } from '../token-count.ts'
import type { Stamp, StreamItem } from '../wire.ts'
import { callId, finishReason, renderUsage, replyHead } from './render-reply.ts'

export function* streamReply(reply: Reply, stamp: Stamp): Generator<StreamItem, void> {
  const head = replyHead(stamp, 'chat.completion.chunk')
  // Asked-for usage makes every chunk carry the key; otherwise none has it.
  const noUsage = stamp.wantsStreamUsage ? { usage: null } : {}
  let started = false
  let callIndex = 0

  function chunk(delta: object, finish: string | null = null): StreamItem {
    const choice = { index: 0, delta, logprobs: null, finish_reason: finish }
    return record({ ...head, choices: [choice], ...noUsage })
  }

  function* start(): Generator<StreamItem, void> {
    if (started) return
    started = true
    const onlyCalls = !reply.steps.some((step) => step.kind === 'text') && reply.stop.reason === 'tool-calls'
    yield chunk({ role: 'assistant', content: onlyCalls ? null : '', refusal: null })
  }

  for (const step of reply.steps) {
    if (step.kind === 'wait') {
      yield step
      continue
    }
    yield* start()
    if (step.kind === 'think') yield chunk({ reasoning_content: step.text })
    if (step.kind === 'text') yield chunk({ content: step.text })
    if (step.kind === 'call') {
      for (const delta of callDeltas(step.call, callIndex, callId(stamp, callIndex))) {
        yield chunk({ tool_calls: [delta] })
      }
      callIndex += 1
    }
  }
  yield* start()
  if (reply.breaksOff) return
  yield chunk({}, finishReason(reply.stop))
  if (stamp.wantsStreamUsage) yield record({ ...head, choices: [], usage: renderUsage(reply.usage) })
  yield { kind: 'record', text: 'data: [DONE]\n\n' }
}

function* callDeltas({ name, takes, argumentsText }: ToolCall, index: number, id: string) {
  const fragments = splitFragments(argumentsText)
  if (takes === 'text') {
    yield { index, id, type: 'custom', custom: { name, input: '' } }
    for (const input of fragments) yield { index, custom: { input } }
  } else {
    yield { index, id, type: 'function', function: { name, arguments: '' } }
    for (const fragment of fragments) yield { index, function: { arguments: fragment } }
  }
}

function record(data: object): StreamItem {
  return { kind: 'record', text: `data: ${JSON.stringify(data)}\n\n` }
}
