// A reply as Messages events. The order is the one strict clients insist on: message_start with usage, blocks one at a
// time with indexes from 0, a message_delta with usage, one message_stop and nothing after it.

import type { Reply } from '../reply.ts'
import { splitFragments } from '../token-count.ts'
import type { Stamp, StreamItem } from '../wire.ts'
import { messageHead, renderDeltaUsage, renderStop, renderUsage, toolUse } from './render-reply.ts'

export function* streamReply(reply: Reply, stamp: Stamp): Generator<StreamItem, void> {
  const events = new MessageEvents(reply, stamp)
  for (const step of reply.steps) {
    switch (step.kind) {
      case 'wait':
        yield step
        break
      case 'think':
        yield* events.delta('thinking', { type: 'thinking_delta', thinking: step.text })
        break
      case 'seal':
        yield* events.delta('thinking', { type: 'signature_delta', signature: step.signature })
        yield* events.closeBlock()
        break
      case 'text':
        yield* events.delta('text', { type: 'text_delta', text: step.text })
        break
      case 'call':
        yield* events.call(step.call.name, step.call.argumentsText)
        break
    }
  }
  yield* reply.breaksOff ? events.start() : events.finish()
}

const emptyBlocks = {
  thinking: { type: 'thinking', thinking: '', signature: '' },
  text: { type: 'text', text: '', citations: null },
} as const

class MessageEvents {
  private started = false
  private open: 'thinking' | 'text' | 'tool_use' | undefined
  private index = 0
  private calls = 0

  constructor(
    private readonly reply: Reply,
    private readonly stamp: Stamp,
  ) {}

  *start(): Generator<StreamItem, void> {
    if (this.started) return
    this.started = true
    const { usage } = this.reply
    // The provider has written one token at most when it sends this, and does not know yet what it will think.
    const { reasoningTokens: _, ...soFar } = { ...usage, outputTokens: Math.min(1, usage.outputTokens) }
    const message = {
      ...messageHead(this.stamp),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      container: null,
      diagnostics: null,
      usage: renderUsage(soFar),
    }
    yield record('message_start', { message })
  }

  *delta(kind: 'thinking' | 'text', delta: object): Generator<StreamItem, void> {
    if (this.open !== kind) yield* this.openBlock(kind, emptyBlocks[kind])
    yield record('content_block_delta', { index: this.index, delta })
  }

  *call(name: string, argumentsText: string): Generator<StreamItem, void> {
    yield* this.openBlock('tool_use', toolUse(this.stamp, this.calls, name))
    this.calls += 1
    // Anthropic's first fragment is usually empty.
    for (const fragment of ['', ...splitFragments(argumentsText)]) {
      const delta = { type: 'input_json_delta', partial_json: fragment }
      yield record('content_block_delta', { index: this.index, delta })
    }
    yield* this.closeBlock()
  }

  *closeBlock(): Generator<StreamItem, void> {
    if (this.open === undefined) return
    this.open = undefined
    yield record('content_block_stop', { index: this.index })
    this.index += 1
  }

  *finish(): Generator<StreamItem, void> {
    yield* this.start()
    yield* this.closeBlock()
    yield record('message_delta', {
      delta: { ...renderStop(this.reply.stop), stop_details: null, container: null },
      usage: renderDeltaUsage(this.reply.usage),
    })
    yield record('message_stop', {})
  }

  private *openBlock(kind: 'thinking' | 'text' | 'tool_use', block: object): Generator<StreamItem, void> {
    yield* this.start()
    yield* this.closeBlock()
    this.open = kind
    yield record('content_block_start', { index: this.index, content_block: block })
    if (this.index === 0) yield record('ping', {})
  }
}

function record(type: string, data: object): StreamItem {
  return { kind: 'record', text: `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n` }
}
