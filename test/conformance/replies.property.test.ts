// Whatever a provider answers, a caller of the other dialect reads the same from a stream as from a whole reply, under
// the strict grammar, and calls, stop and usage are the provider's.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anthropicMessages } from '../../src/dialects/anthropic-messages/index.ts'
import type { ReplyEvent } from '../../src/dialects/canonical/reply.ts'
import type { ReplyMapping } from '../../src/dialects/canonical/translation.ts'
import { openaiChat } from '../../src/dialects/openai-chat/index.ts'
import { CollectedReply, TranslatedStream } from '../../src/pipeline/lanes.ts'
import { target } from '../parts/chat-stream.ts'
import { collectReply } from '../parts/collect-reply.ts'
import { anyReply, context } from '../parts/reply-events.ts'
import { meaningOf, type ReadReply, readReply, withValues } from './replies/read-reply.ts'

const mapping: ReplyMapping = {
  toolNames: new Map(),
  customTools: new Set(),
  stop: [],
}

describe.each([
  { name: 'chat → messages', from: openaiChat, to: anthropicMessages, surface: 'messages' },
  { name: 'messages → chat', from: anthropicMessages, to: openaiChat, surface: 'chat' },
] as const)('$name', ({ from, to, surface }) => {
  const translated = { from, to, target, mapping, context, note: () => {} }

  /** The reply as a provider would send it, in two pieces. */
  const sent = (relay: TranslatedStream | CollectedReply, events: readonly ReplyEvent[], cut: number): string => {
    const renderer = from.translation.renderStream(context)
    const stream = Buffer.from(events.map((event) => renderer.render(event)).join('') + renderer.terminal)
    const at = cut % (stream.length + 1)
    const bytes = [relay.push(stream.subarray(0, at)), relay.push(stream.subarray(at)), relay.end(), relay.terminal]
    expect(relay.fault).toBeUndefined()
    return Buffer.concat(bytes).toString()
  }
  const readings = (events: readonly ReplyEvent[], cut: number): [streamed: ReadReply, whole: ReadReply] => [
    readReply(surface, sent(new TranslatedStream(translated), events, cut), { stream: true }),
    readReply(surface, sent(new CollectedReply(translated), events, cut), { stream: false }),
  ]

  test('a stream says what a whole reply says, by the grammar', () => {
    fc.assert(
      fc.property(anyReply, fc.nat(), (events, cut) => {
        const [streamed, whole] = readings(events, cut)
        expect([streamed.violations, whole.violations]).toEqual([[], []])
        expect(withValues(meaningOf(streamed.content))).toEqual(withValues(meaningOf(whole.content)))
        expect(streamed.content.proof).toEqual(whole.content.proof)
      }),
      { numRuns: 200 },
    )
  })

  test('calls, stop and usage are kept', () => {
    fc.assert(
      fc.property(anyReply, fc.nat(), (events, cut) => {
        const { blocks, stop, usage } = collectReply(events)
        const [{ content }] = readings(events, cut)
        const meant = meaningOf(content)
        const calls = blocks.flatMap((block) => (block.kind === 'tool-call' && !block.custom ? [block] : []))
        const kept = meant.calls.filter(({ name }) => name !== 'patch')
        expect(kept.map(({ id, name, arguments: json }) => [id, name, json.trim()])).toEqual(
          calls.map(({ id, name, arguments: json }) => [id, name, json.trim() || '{}']),
        )
        expect(meant.stop).toBe(stop.unified === 'stop-sequence' ? 'end' : (stop.unified as typeof meant.stop))
        if (!usage) return expect(meant.usage.output).toBeGreaterThanOrEqual(0)
        expect(meant.usage).toMatchObject({
          input: usage.inputTokens,
          cacheRead: usage.cacheReadTokens,
          cacheWrite: usage.cacheWriteTokens,
          output: usage.outputTokens,
        })
      }),
      { numRuns: 200 },
    )
  })
})
