// Counts the tokens of a conversation without a tokenizer: for answers whose usage is missing, and for the token-counting
// endpoint.

import type {
  AssistantBlock,
  Conversation,
  DocumentBlock,
  TextBlock,
  UserBlock,
} from '../dialects/canonical/conversation.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import { estimateTokens } from '../kernel/token-estimate.ts'
import { audioTokens, bytesPerToken, decodedBytes } from './estimate.ts'

/** Tokens of a turn beside its text: role and delimiters. */
const turnTokens = 4
/** An image of common size; providers charge by pixels, which are not decoded here. */
const imageTokens = 1600
/** Bytes of a PDF per token: a page is read as text and as an image. */
const pdfBytesPerToken = 25
/** Tokens of a body that cannot be parsed. Never zero: clients read zero as "unknown" and stop managing their context. */
export function tokensOfBytes(body: Uint8Array): number {
  return Math.max(1, Math.ceil(body.length / bytesPerToken))
}

/** Counts what the model would read (system, turns, tools), rounding up where it cannot know. */
export function countTokens(conversation: Conversation): number {
  let tokens = 0
  for (const part of partsOf(conversation)) tokens += typeof part === 'number' ? part : estimateTokens(part)
  return tokens
}

/** Characters counted in one go, in a millisecond or two. */
const chunkLength = 256 * 1024

/** Like `countTokens`, but yields to the event loop in between, for bodies of megabytes. */
export async function countTokensInChunks(conversation: Conversation): Promise<number> {
  let tokens = 0
  let length = 0
  for (const part of partsOf(conversation)) {
    if (typeof part === 'number') {
      tokens += part
      continue
    }
    for (let from = 0; from < part.length; from += chunkLength) {
      const chunk = part.slice(from, from + chunkLength)
      tokens += estimateTokens(chunk)
      length += chunk.length
      if (length < chunkLength) continue
      length = 0
      await yieldToEventLoop()
    }
  }
  return tokens
}

/** A text to count, or a known number of tokens. */
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

function* blockParts(block: TextBlock | UserBlock | AssistantBlock): Generator<Part> {
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
  return Math.ceil(decodedBytes(base64.length) / pdfBytesPerToken)
}
