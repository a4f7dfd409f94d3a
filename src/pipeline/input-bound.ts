// How many input tokens a body may come to. Roughly, by its bytes, for wallets with room; for thin ones strictly. Pictures
// and documents are megabytes of body and a few thousand tokens, or an address and a hundred pages: a body that may
// have any is read for them, and what only looks like one counts as text.

import type { Conversation, DocumentBlock, ImageBlock } from '../dialects/canonical/conversation.ts'
import { findBytes, hasBytes } from '../wire/find-bytes.ts'
import { audioTokens } from './estimate-tokens.ts'

const bytesPerToken = 4
/** What surrounds the text in the provider's own prompt: roles, tool instructions. */
const overheadTokens = 1024
/** The most that today's models read out of one picture. */
const pictureTokens = 5_000
/** A document is read as text and as a picture of every page; a page has at least this many bytes, as base64. */
const documentBytesPerToken = 10
/** What models make of a second of sound differs; the estimate is for the usual ones. */
const soundShare = 4
/** A document at an address: nobody knows its size, but providers take a hundred pages of 3,000 tokens at most. */
const documentTokensMost = 300_000

/** What a provider may add to a prompt and count: its own instructions, and the definitions of tools known by name. */
const addedTokensMost = 4_096
/** The most that any model counts for one picture: gpt-4o-mini takes 2,833 and 5,667 for each of six tiles, 36,835. */
const pictureTokensMost = 40_000
/** The most input tokens where the body does not tell and the catalog has no `context_tokens`. */
const contextTokensUnknown = 1_048_576

/** Reading takes milliseconds for each megabyte, in which nobody else is served; larger ones count as all that fits. */
export const readBytesMax = 8 * 1024 * 1024

const cacheWord = Buffer.from('cache_control')
const geoWord = Buffer.from('inference_geo')
/** In bodies with pictures, documents, sound, files, or what makes a provider look things up. Text may speak of them too. */
const mediaWords = [
  ...['base64', '_url"', '"file_id"', '"file_data"', '"input_audio"', '"audio"', 'web_search', '_202'],
  ...['"plugins"', '"search_parameters"', '"mcp_servers"', '"container"'],
].map((word) => Buffer.from(word))
/** As a value, `"type": "url"`; as a name it stands in the schemas of many tools. */
const urlWord = Buffer.from('"url"')
/** Names can be written with escapes where no writer of JSON needs any: such a body has something to hide. */
const escapeWord = Buffer.from('\\u00')
const backslash = 0x5c
const letterU = 0x75
const letterA = 0x61
const zero = 0x30
const nine = 0x39
const underscore = 0x5f
const lowerZ = 0x7a
const lastAscii = 0x7f
const colon = 0x3a
const space = 0x20

/** Whether something is to be kept in a provider's cache. */
export function hasCacheMark(body: Uint8Array): boolean {
  return hasBytes(body, cacheWord) || hasEscaped(body, underscore, lowerZ)
}

/** Whether it may say where the work is to be done. */
export function mayNamePlace(body: Uint8Array): boolean {
  return hasBytes(body, geoWord) || hasEscaped(body, underscore, lowerZ)
}

/** Whether its bytes alone may say little about its tokens. */
export function mayHaveMedia(body: Uint8Array): boolean {
  return mediaWords.some((word) => hasBytes(body, word)) || hasUrlValue(body) || hasEscaped(body, space, lastAscii)
}

/** Whether one of these characters stands there as `\u00..`. */
function hasEscaped(body: Uint8Array, first: number, last: number): boolean {
  const found = findBytes(body, escapeWord)
  if (found === -1) return false
  // By hand from here on: a body may be all escapes, and each search costs more than what it passes.
  for (let at = found; at < body.length - 5; at++) {
    if (body[at] !== backslash) continue
    at++
    if (body[at] !== letterU || body[at + 1] !== zero || body[at + 2] !== zero) continue
    const code = digitOf(body[at + 3]) * 16 + digitOf(body[at + 4])
    if (code >= first && code <= last) return true
  }
  return false
}

/** Of a hexadecimal digit. */
function digitOf(byte = 0): number {
  return byte <= nine ? byte - zero : (byte | space) - letterA + 10
}

function hasUrlValue(body: Uint8Array): boolean {
  for (let at = findBytes(body, urlWord); at !== -1; at = findBytes(body, urlWord, at + 1)) {
    let before = at - 1
    while (before > 0 && (body[before] ?? 0) <= space) before--
    if (body[before] === colon) return true
  }
  return false
}

/** `ratio`: how many tokens the model has made of what four bytes were taken to be one. */
export function textTokens(bytes: number, ratio: number): number {
  return Math.ceil((Math.max(0, bytes) / bytesPerToken) * ratio)
}

/** `read`: what was read of it; asked for only where it may matter. undefined = it could not be read. */
export function roughInputTokens(
  body: Uint8Array,
  ratio: number,
  read: () => Conversation | undefined,
  { contextTokens }: ContextBound,
  hasMedia = mayHaveMedia(body),
): number {
  if (!hasMedia) return within(contextTokens, textTokens(body.length, ratio))
  const conversation = body.length > readBytesMax ? undefined : read()
  if (!isKnown(conversation)) return contextTokens ?? body.length + overheadTokens
  let textBytes = body.length
  let tokens = 0
  for (const block of mediaOf(conversation)) {
    textBytes -= bytesInBody(block)
    tokens += mediaTokens(block)
  }
  return within(contextTokens, textTokens(textBytes, ratio) + tokens)
}

/** Whether something of it may be heard: a film has sound too, and of an address nobody knows what is there. */
export function mayHaveSound(conversation: Conversation | undefined): boolean {
  if (!isKnown(conversation)) return true
  return mediaOf(conversation).some(({ kind, source }) => {
    if (source.kind === 'text' || (kind === 'image' && source.kind === 'data')) return false
    return source.kind !== 'data' || !/^(text|image)\/|^application\/pdf$/.test(source.mediaType)
  })
}

interface ContextBound {
  readonly contextTokens: number | undefined
}

/** Of what only the provider can read, such as its own tools and files, anything may come that fits into the model. */
function isKnown(conversation: Conversation | undefined): conversation is Conversation {
  return conversation !== undefined && !conversation.unsupported.some(({ addsInput }) => addsInput)
}

function within(contextTokens: number | undefined, tokens: number): number {
  return contextTokens === undefined ? tokens : Math.min(contextTokens, tokens)
}

/** No tokenizer makes more than one token of a byte. */
export function strictInputTokens(
  body: Uint8Array,
  conversation: Conversation | undefined,
  { contextTokens }: ContextBound,
): number {
  if (!isKnown(conversation) && contextTokens !== undefined) return contextTokens
  let tokens = body.length + overheadTokens
  for (const block of conversation ? mediaOf(conversation) : []) tokens += mediaTokens(block) - bytesInBody(block)
  return within(contextTokens, tokens)
}

/**
 * The most input tokens that a provider can truthfully report for one reading of the body: one for each byte, what
 * providers add, and what pictures and documents may come to. Where only the provider knows what it reads, such as a
 * document at an address, its own tools and its files, the context window is the bound.
 */
export function inputTokensMost(
  body: Uint8Array,
  read: () => Conversation | undefined,
  { contextTokens = contextTokensUnknown }: ContextBound,
  hasMedia = mayHaveMedia(body),
): number {
  let tokens = body.length + addedTokensMost
  if (hasMedia) {
    const conversation = body.length > readBytesMax ? undefined : read()
    if (!isKnown(conversation)) return contextTokens
    for (const block of mediaOf(conversation)) tokens += mediaTokensMost(block) - bytesInBody(block)
  }
  return Math.min(contextTokens, tokens)
}

type MediaBlock = ImageBlock | DocumentBlock

function mediaOf({ turns }: Conversation): readonly MediaBlock[] {
  return turns.flatMap(({ role, blocks }) => {
    if (role !== 'user') return []
    const all = blocks.flatMap((block) => (block.kind === 'tool-result' ? block.content : [block]))
    return all.filter((block) => block.kind === 'image' || block.kind === 'document')
  })
}

function mediaTokens({ kind, source }: MediaBlock): number {
  if (source.kind === 'text') return 0
  if (source.kind === 'url') return kind === 'image' ? pictureTokens : documentTokensMost
  if (kind === 'image') return pictureTokens
  const { mediaType, base64 } = source
  return mediaType.startsWith('audio/')
    ? soundShare * audioTokens(mediaType, base64.length)
    : Math.ceil(base64.length / documentBytesPerToken)
}

function mediaTokensMost({ kind, source }: MediaBlock): number {
  if (source.kind === 'text') return 0
  if (kind === 'image') return pictureTokensMost
  if (source.kind === 'url') return Number.POSITIVE_INFINITY
  // Sound has fewer tokens than bytes; a page of a document may be small and have thousands.
  const { mediaType, base64 } = source
  return mediaType.startsWith('audio/') ? base64.length : Math.max(base64.length, documentTokensMost)
}

/** Those that are no text. */
function bytesInBody({ source }: MediaBlock): number {
  return source.kind === 'data' ? source.base64.length : 0
}
