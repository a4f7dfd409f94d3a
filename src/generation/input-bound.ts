// How many input tokens a body may come to. Roughly, from its bytes alone, for wallets with room; for thin ones strictly,
// from what was read of it. Pictures and documents are megabytes of body and a few thousand tokens.

import type { Conversation, DocumentBlock, ImageBlock } from '../dialects/canonical/conversation.ts'

const bytesPerToken = 4
/** What surrounds the text in the provider's own prompt: roles, tool instructions. */
const overheadTokens = 1024
/** The most that today's models read out of one picture. */
const pictureTokens = 5_000
/** A document is read as text and as a picture of every page; a page has at least this many bytes, as base64. */
const documentBytesPerToken = 10
/** A document at an address: nobody knows its size, but providers take a hundred pages of 3,000 tokens at most. */
const documentTokensMost = 300_000
/** A shorter one is text that happens to speak of base64. */
const mediaBytesMin = 1024

const base64Word = Buffer.from('base64')
const dataName = Buffer.from('"data"')
const pdfWord = Buffer.from('application/pdf')
const cacheWord = Buffer.from('cache_control')
/** How far behind the word the data may begin. */
const reach = 200

const semicolon = 0x3b
const quote = 0x22

/** Whether something is to be kept in a provider's cache. */
export function hasCacheMark(body: Uint8Array): boolean {
  return buffer(body).includes(cacheWord)
}

/** `ratio`: how many tokens the model has made of what four bytes were taken to be one. */
export function roughInputTokens(body: Uint8Array, ratio: number): number {
  const { textBytes, mediaTokens } = measure(body)
  return Math.ceil((textBytes / bytesPerToken) * ratio) + mediaTokens
}

/**
 * No tokenizer makes more than one token of a byte. Only what was read as a medium counts as one: text that looks like
 * one would be a cheap way to a long prompt. Of what only the provider can read, such as its own tools, anything may
 * come that fits into the model.
 */
export function strictInputTokens(
  body: Uint8Array,
  conversation: Conversation | undefined,
  { contextTokens }: { readonly contextTokens: number | undefined },
): number {
  const isKnown = conversation !== undefined && !conversation.leftovers.some(({ refuse }) => refuse)
  if (!isKnown && contextTokens !== undefined) return contextTokens
  let tokens = body.length + overheadTokens
  for (const block of conversation ? mediaOf(conversation) : []) tokens += mediaTokensOf(block)
  return contextTokens === undefined ? tokens : Math.min(contextTokens, tokens)
}

type MediaBlock = ImageBlock | DocumentBlock

function mediaOf({ turns }: Conversation): readonly MediaBlock[] {
  return turns.flatMap(({ role, blocks }) => {
    if (role !== 'user') return []
    const all = blocks.flatMap((block) => (block.kind === 'tool-result' ? block.content : [block]))
    return all.filter((block) => block.kind === 'image' || block.kind === 'document')
  })
}

/** Beyond the bytes that it has in the body; below zero for one that stands there in full. */
function mediaTokensOf({ kind, source }: MediaBlock): number {
  if (source.kind === 'text') return 0
  if (source.kind === 'url') return kind === 'image' ? pictureTokens : documentTokensMost
  const { length } = source.base64
  return (kind === 'image' ? pictureTokens : Math.ceil(length / documentBytesPerToken)) - length
}

function measure(body: Uint8Array): { textBytes: number; mediaTokens: number } {
  const bytes = buffer(body)
  let textBytes = bytes.length
  let mediaTokens = 0
  for (let at = bytes.indexOf(base64Word); at !== -1; at = bytes.indexOf(base64Word, at + 1)) {
    const start = dataStart(bytes, at)
    const end = start === -1 ? -1 : bytes.indexOf(quote, start)
    const length = end - start
    if (end === -1 || length < mediaBytesMin) continue
    const isDocument = bytes.subarray(Math.max(0, at - reach), start).includes(pdfWord)
    textBytes -= length
    mediaTokens += isDocument ? Math.ceil(length / documentBytesPerToken) : pictureTokens
    at = end
  }
  return { textBytes, mediaTokens }
}

/** Of `data:…;base64,…` right behind the word; of `"type":"base64", … "data":"…"` in the member of that name. */
function dataStart(bytes: Buffer, at: number): number {
  const behind = at + base64Word.length
  if (bytes[at - 1] === semicolon) return behind + 1
  const name = bytes.subarray(behind, behind + reach).indexOf(dataName)
  if (name === -1) return -1
  const open = bytes.indexOf(quote, behind + name + dataName.length)
  return open === -1 ? -1 : open + 1
}

function buffer(body: Uint8Array): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}
