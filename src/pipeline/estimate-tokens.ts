// How many tokens a request will roughly be, before or without a provider's own count: its text by kernel/token-estimate,
// and what surrounds the text by the usual overheads.

import type {
  AssistantBlock,
  Conversation,
  DocumentBlock,
  TextBlock,
  UserBlock,
} from '../dialects/canonical/conversation.ts'
import { estimateTokens } from '../kernel/token-estimate.ts'
import { yieldToEventLoop } from '../kernel/yield-to-event-loop.ts'

const bytesPerToken = 4
/** What a turn costs beside its text: role and borders. */
const turnTokens = 4
/** An image of the usual size; what providers charge depends on pixels that are not looked at here. */
const imageTokens = 1600
/** A page of a document comes as text and as picture; this many bytes of a PDF make a page of it, roughly. */
const documentBytesPerToken = 25
/**
 * Sound is some 32 tokens a second, whatever its bytes: plain samples of speech are 32,000 bytes a second (16 kHz, 16 bit,
 * one channel), mp3 and flac about 16,000, and what is made for speech 4,000 or less.
 */
const soundBytesPerToken: Readonly<Record<string, number>> = {
  ...{ 'audio/wav': 1000, 'audio/aiff': 1000 },
  ...{ 'audio/mp3': 500, 'audio/mpeg': 500, 'audio/flac': 500 },
}
/** On the high side where the format is not known to need more bytes. */
const soundBytesPerTokenLeast = 125

/** Never zero: clients take a zero for "nothing known" and stop managing their context. */
export function estimateInputTokens(body: Uint8Array): number {
  return Math.max(1, Math.ceil(body.length / bytesPerToken))
}

/** Counts what the model would read: system, turns, tools; on the high side where it cannot know. */
export function countTokensLocally(conversation: Conversation): number {
  let tokens = 0
  for (const part of partsOf(conversation)) tokens += typeof part === 'number' ? part : estimateTokens(part)
  return tokens
}

/** What is counted in one go: a millisecond or two. */
const sliceLength = 256 * 1024

/** The same for bodies of megabytes, with a breath for everybody else now and then. */
export async function countTokensGently(conversation: Conversation): Promise<number> {
  let tokens = 0
  let length = 0
  for (const part of partsOf(conversation)) {
    if (typeof part === 'number') {
      tokens += part
      continue
    }
    for (let from = 0; from < part.length; from += sliceLength) {
      const slice = part.slice(from, from + sliceLength)
      tokens += estimateTokens(slice)
      length += slice.length
      if (length < sliceLength) continue
      length = 0
      await yieldToEventLoop()
    }
  }
  return tokens
}

/** Texts that are to be counted, and numbers of tokens that are known. */
type Part = string | number

function* partsOf({ system, turns, tools, outputFormat }: Conversation): Generator<Part> {
  yield 3 + (system.length > 0 ? turnTokens : 0)
  for (const block of system) yield* blockParts(block)
  for (const { blocks } of turns) {
    yield turnTokens
    for (const block of blocks) yield* blockParts(block)
  }
  for (const tool of tools) {
    yield turnTokens * 2
    yield tool.name
    yield tool.description ?? ''
    if (tool.kind === 'function') yield tool.schema ?? ''
  }
  if (outputFormat?.kind === 'json-schema') yield outputFormat.schema
}

/** Of sound by value. */
export function audioTokens(mediaType: string, base64Length: number): number {
  return Math.ceil(dataBytes(base64Length) / (soundBytesPerToken[mediaType] ?? soundBytesPerTokenLeast))
}

/** Four characters carry three bytes. */
function dataBytes(base64Length: number): number {
  return (base64Length * 3) / 4
}

type Block = TextBlock | UserBlock | AssistantBlock

function* blockParts(block: Block): Generator<Part> {
  switch (block.kind) {
    case 'text':
    case 'refusal':
    case 'thinking':
      yield block.text
      return
    case 'sealed-thinking':
      yield block.data
      return
    case 'tool-call':
      yield turnTokens * 2
      yield block.name
      yield block.arguments
      return
    case 'tool-result':
      yield turnTokens * 2
      for (const inner of block.content) yield* blockParts(inner)
      return
    case 'image':
      yield imageTokens
      return
    case 'document':
      yield documentPart(block)
  }
}

function documentPart({ source }: DocumentBlock): Part {
  if (source.kind === 'text') return source.text
  if (source.kind === 'url') return imageTokens
  const { mediaType, base64 } = source
  if (mediaType.startsWith('audio/')) return audioTokens(mediaType, base64.length)
  return Math.ceil(dataBytes(base64.length) / documentBytesPerToken)
}
