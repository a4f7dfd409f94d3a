// Streams of providers of each dialect, read into canonical events, put right and written for both surfaces. Whatever
// the bytes are, the events keep their order, what clients get is legal, and no count is one that could be a credit.

import fc from 'fast-check'
import { anthropicMessages } from '../../src/dialects/anthropic-messages/index.ts'
import type { ReplyEvent } from '../../src/dialects/canonical/reply.ts'
import type { Dialect, UpstreamDialect } from '../../src/dialects/dialect.ts'
import { gemini } from '../../src/dialects/gemini/index.ts'
import { openaiChat } from '../../src/dialects/openai-chat/index.ts'
import { openaiResponses } from '../../src/dialects/openai-responses/index.ts'
import type { Usage } from '../../src/kernel/usage.ts'
import { CollectedReply, TranslatedStream } from '../../src/pipeline/lanes.ts'
import { SseOverflow, SseReader } from '../../src/wire/sse.ts'
import { checkChatReply, checkChatStream } from '../conformance/checker/grammar-chat.ts'
import { checkMessagesReply, checkMessagesStream } from '../conformance/checker/grammar-messages.ts'
import { target as upstreamTarget } from '../parts/chat-stream.ts'
import { context } from '../parts/reply-events.ts'
import { replyCorpus, streamCorpus, trouble } from './corpus.ts'
import { cutAt, cuts, damaged } from './damage.ts'
import { type FuzzTarget, insist } from './target.ts'

const mapping = {
  toolNames: new Map(),
  customTools: new Set<string>(),
  stop: ['END'],
}

export function checkCounts(usage: Usage | undefined): void {
  if (!usage) return
  const { source, cacheReported, inputReported, isUsOnly, tier, summaries = [], ...counts } = usage
  for (const each of summaries) checkCounts({ ...each, source })
  for (const [name, count] of Object.entries(counts)) {
    insist(Number.isSafeInteger(count) && count >= 0, `${name} is ${count}`)
  }
}

/** reply-start first, one block at a time, nothing behind the end. */
function checkOrder(all: readonly ReplyEvent[]): void {
  // A ping may come at any time; renderers know what is legal where.
  const events = all.filter(({ type }) => type !== 'keep-alive')
  let open = false
  let over = false
  for (const [at, event] of events.entries()) {
    insist(!over, `${event.type} behind the end`)
    const isFirst = at === 0 && (event.type === 'reply-start' || event.type === 'reply-failure')
    insist(isFirst === (at === 0), `${event.type} in place ${at}`)
    if (event.type === 'block-start') {
      insist(!open, 'a block inside a block')
      open = true
    } else if (event.type === 'block-end') {
      insist(open, 'an end of no block')
      open = false
    } else if (event.type.endsWith('-delta')) insist(open, 'a delta of no block')
    if (event.type === 'reply-end') {
      insist(!open, 'an end inside a block')
      checkCounts(event.usage)
    }
    if (event.type === 'reply-start') checkCounts(event.usage)
    over = event.type === 'reply-end' || event.type === 'reply-failure'
  }
  insist(over, 'no end')
}

function parse(dialect: UpstreamDialect, pieces: readonly Uint8Array[]): readonly ReplyEvent[] {
  const parser = dialect.translation.parseStream(upstreamTarget, context.requestId)
  return [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end()]
}

interface Surface {
  readonly dialect: Dialect
  violations(stream: string): readonly { readonly rule: string }[]
  wholeViolations(body: string): readonly { readonly rule: string }[]
}

const eventsIn = (stream: string) => new SseReader().push(new TextEncoder().encode(stream))
const surfaces: readonly Surface[] = [
  {
    dialect: openaiChat,
    violations: (stream) => checkChatStream(eventsIn(stream), { wantsUsage: true }),
    wholeViolations: (body) => checkChatReply(JSON.parse(body)),
  },
  {
    dialect: anthropicMessages,
    violations: (stream) => checkMessagesStream(eventsIn(stream)),
    // The arguments that a model wrote are data, half a character in them included.
    wholeViolations: (body) =>
      checkMessagesReply(JSON.parse(body, (name, value: unknown) => (name === 'input' ? {} : value))),
  },
]

function checkTranslation(
  from: UpstreamDialect,
  read: (relay: TranslatedStream | CollectedReply) => readonly Uint8Array[],
): void {
  for (const { dialect: to, violations, wholeViolations } of surfaces) {
    const translated = { from, to, target: upstreamTarget, mapping, context, note: () => {} }
    for (const relay of [new TranslatedStream(translated), new CollectedReply(translated)]) {
      const bytes = read(relay)
      insist(relay.finished !== (relay.fault !== undefined), 'neither an end nor a fault, or both')
      insist(Number.isSafeInteger(relay.outputBytes) && relay.outputBytes >= 0, `${relay.outputBytes} bytes of output`)
      checkCounts(relay.usage)
      if (!relay.finished) continue
      const text = Buffer.concat([...bytes, relay.terminal]).toString()
      const all = relay instanceof TranslatedStream ? violations(text) : wholeViolations(text)
      // The arguments that a model wrote are data: they pass unchanged, valid JSON or not.
      const found = all.filter(({ rule }) => rule !== 'tool-json')
      insist(found.length === 0, `${to.id} ${relay.constructor.name}: ${JSON.stringify(found)}\n${text.slice(0, 3000)}`)
    }
  }
}

/** The byte lane of a dialect that callers speak: bytes pass, and are counted. */
function checkRelay(dialect: Dialect, pieces: readonly Uint8Array[]): void {
  const modelJson = new TextEncoder().encode('"acme/large"')
  const relay = dialect.relayStream({ ...context, modelJson, envelope: { choices: 1 } })
  for (const piece of pieces) relay.push(piece)
  relay.end()
  insist(Number.isSafeInteger(relay.outputBytes) && relay.outputBytes >= 0, `${relay.outputBytes} bytes of output`)
  insist(!relay.finished || relay.usage !== undefined, 'an end without usage')
  checkCounts(relay.usage)
  checkCounts(relay.usageSoFar)
}

function streamTarget(dialect: UpstreamDialect): FuzzTarget {
  const name = `${dialect.id}-stream`
  return {
    name,
    shareInputs: 500,
    open() {
      const corpus = [...trouble(name), ...streamCorpus[dialect.id]]
      const check = (bytes: Uint8Array, places: readonly number[]): void => {
        const pieces = cutAt(bytes, places)
        try {
          const events = parse(dialect, pieces)
          checkOrder(events)
          insist(JSON.stringify(events) === JSON.stringify(parse(dialect, [bytes])), 'the cut changes what is read')
          checkTranslation(dialect, (relay) => [...pieces.map((piece) => relay.push(piece)), relay.end()])
          if (dialect !== openaiResponses) checkRelay(dialect as Dialect, pieces)
        } catch (error) {
          if (!(error instanceof SseOverflow)) throw error
        }
      }
      return {
        property: fc.property(damaged(corpus), cuts, check),
        examples: corpus.map((bytes) => [bytes, [0x8000]]),
      }
    },
  }
}

/** Whole replies and refusals of every dialect. */
function replyTarget(dialect: UpstreamDialect): FuzzTarget {
  const name = `${dialect.id}-reply`
  return {
    name,
    shareInputs: 500,
    open() {
      const corpus = [...trouble(name), ...replyCorpus[dialect.id]]
      const check = (bytes: Uint8Array<ArrayBuffer>, status: number): void => {
        checkOrder(dialect.translation.parseStream(upstreamTarget, context.requestId).whole(bytes))
        checkTranslation(dialect, (relay) => [relay.whole(bytes)])
        const fault = dialect.readFault(status, new Headers({ 'retry-after': '7' }), Buffer.from(bytes).toString())
        insist(fault.message.length <= 4096, 'a fault without an end')
        if ('relayReply' in dialect) {
          const modelJson = new TextEncoder().encode('"acme/large"')
          const reply = (dialect as Dialect).relayReply(bytes, { ...context, modelJson, envelope: { choices: 1 } })
          if (!('fault' in reply)) checkCounts(reply.usage)
        }
      }
      return {
        property: fc.property(damaged(corpus), fc.integer({ min: 300, max: 599 }), check),
        examples: corpus.map((bytes) => [new Uint8Array(bytes), 400]),
      }
    },
  }
}

const dialects: readonly UpstreamDialect[] = [openaiChat, anthropicMessages, gemini, openaiResponses]

export const streamTargets: readonly FuzzTarget[] = [...dialects.map(streamTarget), ...dialects.map(replyTarget)]
