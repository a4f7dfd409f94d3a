// Every streamed answer, split into two chunks at every byte, from every upstream dialect to every surface: the caller gets
// the same bytes. Without sockets, so that a split costs microseconds; some splits over sockets are in replies.test.ts.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { anthropicMessages } from '../../src/dialects/anthropic-messages/index.ts'
import type { ReplyMapping } from '../../src/dialects/canonical/translation.ts'
import type { Dialect, UpstreamDialect } from '../../src/dialects/dialect.ts'
import { gemini } from '../../src/dialects/gemini/index.ts'
import { openaiChat } from '../../src/dialects/openai-chat/index.ts'
import { openaiResponses } from '../../src/dialects/openai-responses/index.ts'
import type { StreamRelay } from '../../src/dialects/reply/relay.ts'
import { TranslatedStream } from '../../src/pipeline/lanes.ts'
import { target } from '../parts/chat-stream.ts'
import { pieceBytes, piecesOf } from '../parts/pieces.ts'
import { context } from '../parts/reply-events.ts'
import { type DialectName, replyPairs, type SurfaceName } from './cells.ts'
import { replyFixtures } from './replies/index.ts'
import { readReply } from './replies/read-reply.ts'
import type { ReplyFixture } from './replies/reply-fixture.ts'

const surfaces: Readonly<Record<SurfaceName, Dialect>> = {
  chat: openaiChat,
  messages: anthropicMessages,
  responses: openaiResponses,
  gemini,
}
const dialects: Readonly<Record<DialectName, UpstreamDialect>> = surfaces

const relayContext = {
  modelJson: new TextEncoder().encode('"acme/large"'),
  wantsStreamUsage: true,
  envelope: { choices: 1 },
  quotedUsd: context.quotedUsd,
  quoteUsage: context.quoteUsage,
}

/** Warnings about a reply are not tested here. */
const note = (): void => {}

function mappingOf({ feature }: ReplyFixture): ReplyMapping {
  return {
    toolNames: new Map(),
    customTools: new Set(feature.includes('free text') ? ['patch'] : []),
    jsonTool: feature.includes('JSON schema') ? 'json' : undefined,
    stop: [],
    singleToolCall: false,
  }
}

/** All that the caller gets when the provider's bytes come in these pieces. */
function relayed(relay: StreamRelay, pieces: readonly Uint8Array[]): string {
  return Buffer.concat([...pieces.map((piece) => relay.push(piece)), relay.end(), relay.terminal]).toString()
}

/** The lengths of the first piece that change anything. */
function changedBy(open: () => StreamRelay, stream: Uint8Array): number[] {
  const whole = relayed(open(), [stream])
  const lengths = Array.from({ length: pieceBytes }, (_, length) => length)
  return lengths.filter((first) => relayed(open(), piecesOf(stream, first)) !== whole)
}

const endings: Readonly<Record<SurfaceName, RegExp>> = {
  chat: /data: \[DONE\]/,
  messages: /event: message_stop/,
  responses: /event: response\.(completed|incomplete)/,
  gemini: /"finishReason"/,
}

describe.each(replyPairs)('$upstream → $surface', ({ upstream, surface }) => {
  // Not every dialect can say everything.
  const said = replyFixtures.flatMap((fixture) => {
    const bytes = fixture[upstream]
    return bytes ? [[fixture.feature, fixture, bytes] as const] : []
  })
  test.each(said)('%s', (_, fixture, bytes) => {
    const stream = new TextEncoder().encode(bytes.stream)
    const from = dialects[upstream]
    const to = surfaces[surface]
    const open = (): StreamRelay =>
      from === to
        ? to.relayStream(relayContext)
        : new TranslatedStream({ from, to, target, mapping: mappingOf(fixture), context, note })
    expect(relayed(open(), [stream])).toMatch(endings[surface])
    expect(changedBy(open, stream)).toEqual([])
  })
})

const folder = join(import.meta.dir, '../fixtures')

/** Their own dialect is in test/byte-lane. */
describe.each([
  { upstream: 'chat', surface: 'messages' },
  { upstream: 'messages', surface: 'chat' },
  { upstream: 'chat', surface: 'responses' },
  { upstream: 'messages', surface: 'responses' },
  { upstream: 'chat', surface: 'gemini' },
  { upstream: 'messages', surface: 'gemini' },
  { upstream: 'gemini', surface: 'chat' },
  { upstream: 'gemini', surface: 'messages' },
] as const)('recordings, $upstream → $surface', ({ upstream, surface }) => {
  test.each([...new Bun.Glob('*.sse').scanSync(join(folder, upstream))].sort())('%s', (name) => {
    const stream = new Uint8Array(readFileSync(join(folder, upstream, name)))
    const mapping = { toolNames: new Map(), customTools: new Set<string>(), jsonTool: undefined, stop: [] }
    const translated = { from: dialects[upstream], to: surfaces[surface], target, context, note }
    const open = () => new TranslatedStream({ ...translated, mapping: { ...mapping, singleToolCall: false } })
    const { violations, content } = readReply(surface, relayed(open(), [stream]), { stream: true })
    expect(violations).toEqual([])
    expect(content.text + content.calls.map((call) => call.name).join()).not.toBe('')
    expect(changedBy(open, stream)).toEqual([])
  })
})
