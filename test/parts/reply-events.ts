// Canonical replies built in a line or two, whole or as random ones, for tests of what reads or writes them.

import fc from 'fast-check'
import type { ReplyBlock, ReplyEvent, Stop } from '../../src/dialects/canonical/reply.ts'
import type { RenderContext } from '../../src/dialects/canonical/translation.ts'
import { tokensMax, type Usage } from '../../src/kernel/usage.ts'
import { estimateUsage, type UsageBounds } from '../../src/pipeline/usage.ts'
import { noTags } from './content-tags.ts'
import { tokenCounts } from './token-counts.ts'

export const usageOf = (counts: Partial<Usage> = {}): Usage => ({
  ...tokenCounts(10, 5),
  source: 'reported',
  ...counts,
})

const unbounded: UsageBounds = {
  inputTokens: tokensMax,
  outputTokens: tokensMax,
  isCapSent: false,
  summaryTokens: tokensMax,
  units: undefined,
}

export const context: RenderContext = {
  model: 'acme/large',
  requestId: 'req_01ABC',
  createdSeconds: 1_794_700_000,
  nowSeconds: () => 1_794_700_003,
  wantsStreamUsage: true,
  estimatedInputTokens: 42,
  contentTags: noTags,
  quotedUsd: () => '0.000012345',
  quoteUsage: (reported, atStart, outputBytes) =>
    reported ?? estimateUsage(atStart, outputBytes(), unbounded, () => 42),
}

export const started: ReplyEvent = { type: 'reply-start', id: 'up-1', usage: undefined }

export function ended(stop: Stop = { unified: 'end', raw: 'stop' }, usage: Usage | undefined = usageOf()): ReplyEvent {
  return { type: 'reply-end', stop, usage }
}

/** One block with its deltas, and its signature if it is thinking. */
export function block(kind: ReplyBlock, pieces: readonly string[] = [], signature?: string): ReplyEvent[] {
  const type =
    kind.kind === 'tool-call' ? 'arguments-delta' : kind.kind === 'thinking' ? 'thinking-delta' : 'text-delta'
  return [
    { type: 'block-start', block: kind },
    ...pieces.map((text): ReplyEvent => ({ type, text })),
    ...(signature === undefined ? [] : [{ type: 'signature', signature } as const]),
    { type: 'block-end' },
  ]
}

export const text = (...pieces: string[]): ReplyEvent[] => block({ kind: 'text' }, pieces)
export const thinking = (pieces: readonly string[], signature?: string): ReplyEvent[] =>
  block({ kind: 'thinking' }, pieces, signature)
export const call = (id: string, name: string, ...pieces: string[]): ReplyEvent[] =>
  block({ kind: 'tool-call', id, name, custom: false }, pieces)
export const custom = (id: string, name: string, ...pieces: string[]): ReplyEvent[] =>
  block({ kind: 'tool-call', id, name, custom: true }, pieces)
export const sealed = (data: string): ReplyEvent[] => block({ kind: 'sealed-thinking', data })

/** A text cut into pieces anywhere, between the halves of a character too. */
const pieces = (whole: fc.Arbitrary<string>): fc.Arbitrary<string[]> =>
  fc.tuple(whole, fc.array(fc.nat(40), { maxLength: 4 })).map(([written, places]) => {
    const cuts = [...new Set(places.filter((place) => place < written.length))].sort((a, b) => a - b)
    return [...cuts, written.length].map((cut, at) => written.slice(at === 0 ? 0 : cuts[at - 1], cut))
  })

const words = pieces(fc.string({ unit: 'grapheme', maxLength: 30 }))
const inputs = pieces(
  fc
    .dictionary(fc.string({ unit: 'grapheme', maxLength: 6 }), fc.jsonValue({ maxDepth: 2 }))
    .map((value) => JSON.stringify(value)),
)

const anyBlock = (at: number): fc.Arbitrary<ReplyEvent[]> =>
  fc.oneof(
    words.map((said) => text(...said)),
    fc.tuple(words, fc.constantFrom('sig+/=', 'tg1.W10')).map(([said, signature]) => thinking(said, signature)),
    inputs.map((said) => call(`call_${at}`, `tool_${at}`, ...said)),
    fc.constantFrom('', ' ').map((said) => call(`call_${at}`, 'now', said)),
    words.map((said) => custom(`call_${at}`, 'patch', ...said)),
    fc.constant(sealed('Emw=')),
    fc.constant<ReplyEvent[]>([{ type: 'keep-alive' }]),
  )

/** Complete replies whose stop fits what they hold. */
export const anyReply: fc.Arbitrary<ReplyEvent[]> = fc
  .tuple(
    fc.array(fc.nat(), { maxLength: 6 }).chain((list) => fc.tuple(...list.map((_, at) => anyBlock(at)))),
    fc.constantFrom<Stop['unified']>('end', 'length', 'stop-sequence', 'refusal'),
    fc.option(
      fc.record({
        inputTokens: fc.nat(1000),
        cacheReadTokens: fc.nat(9),
        cacheWriteTokens: fc.nat(9),
        outputTokens: fc.nat(1000),
        reasoningTokens: fc.nat(5),
      }),
    ),
  )
  .map(([blocks, unified, counts]) => {
    const events = blocks.flat()
    const hasCalls = events.some((event) => event.type === 'block-start' && event.block.kind === 'tool-call')
    const stop: Stop = hasCalls && unified !== 'length' ? { unified: 'tool-calls', raw: '' } : stopOf(unified)
    return [started, ...events, { type: 'reply-end', stop, usage: counts ? usageOf(counts) : undefined }]
  })

function stopOf(unified: Stop['unified']): Stop {
  if (unified === 'stop-sequence') return { unified, raw: '', sequence: 'END' }
  return unified === 'refusal' ? { unified, raw: '', explanation: 'No.' } : { unified, raw: '' }
}
