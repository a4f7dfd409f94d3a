// How many tokens a request will roughly be, before or without a provider's own count: its text by kernel/token-estimate,
// and what surrounds the text by the usual overheads.

import type { AssistantBlock, Conversation, TextBlock, UserBlock } from '../dialects/canonical/conversation.ts'
import { estimateTokens } from '../kernel/token-estimate.ts'

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
export function countTokensLocally({ system, turns, tools, outputFormat }: Conversation): number {
  let tokens = 3 + (system.length > 0 ? turnTokens : 0)
  for (const block of system) tokens += blockTokens(block)
  for (const { blocks } of turns) tokens += turnTokens + sum(blocks)
  for (const tool of tools) {
    tokens += estimateTokens(tool.name) + estimateTokens(tool.description ?? '') + turnTokens * 2
    if (tool.kind === 'function') tokens += estimateTokens(tool.schema ?? '')
  }
  if (outputFormat?.kind === 'json-schema') tokens += estimateTokens(outputFormat.schema)
  return tokens
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

function sum(blocks: readonly Block[]): number {
  return blocks.reduce((tokens, block) => tokens + blockTokens(block), 0)
}

function blockTokens(block: Block): number {
  switch (block.kind) {
    case 'text':
    case 'refusal':
    case 'thinking':
      return estimateTokens(block.text)
    case 'sealed-thinking':
      return estimateTokens(block.data)
    case 'tool-call':
      return turnTokens * 2 + estimateTokens(block.name) + estimateTokens(block.arguments)
    case 'tool-result':
      return turnTokens * 2 + sum(block.content)
    case 'image':
      return imageTokens
    case 'document': {
      const { source } = block
      if (source.kind === 'text') return estimateTokens(source.text)
      if (source.kind === 'url') return imageTokens
      const { mediaType, base64 } = source
      if (mediaType.startsWith('audio/')) return audioTokens(mediaType, base64.length)
      return Math.ceil(dataBytes(base64.length) / documentBytesPerToken)
    }
  }
}
