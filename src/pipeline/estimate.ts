// The tokens of a request: what its body may contain, how many tokens that is, and bounds for what a provider may report.

import type {
  AssistantBlock,
  Conversation,
  MediaBlock,
  TextBlock,
  UserBlock,
} from '../dialects/canonical/conversation.ts'
import type { Envelope } from '../dialects/canonical/translation.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import { estimateTokens } from '../kernel/token-estimate.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import { backslash, colon, findBytes, hasBytes, hexDigit, lowerU, space, zero } from '../wire/bytes.ts'

/** Close for text in any script, a little high for JSON. */
export const bytesPerToken = 4

// ── Scans of the body ──

/** OpenAI's names too: on a model with marks, they become marks. */
const cacheWords = ['cache_control', 'prompt_cache_breakpoint', 'prompt_cache_options'].map((word) => Buffer.from(word))
/** A part of each, which hardly any body has. */
const cacheWord = Buffer.from('cache_')
const geoWord = Buffer.from('inference_geo')
/** Found in bodies with images, documents, audio, files or hosted tools. Plain text may contain them too. */
const mediaWords = [
  ...['base64', '_url"', '"file_id"', '"file_data"', '"input_audio"', '"audio"', '_search', '_202'],
  ...['"plugins"', '"search_parameters"', '"mcp', '"container', '"code_', '"image_generation"', '"builtin_function"'],
  ...['"inlineData"', '"fileData"'],
].map((word) => Buffer.from(word))
/** As a value, `"type": "url"`; as a name it occurs in many tool schemas. */
const urlWord = Buffer.from('"url"')
/** JSON writers do not escape ASCII in names, so a body that does may hide one of the words above. */
const escapeWord = Buffer.from('\\u00')
const underscore = 0x5f
const lowerZ = 0x7a
const lastAscii = 0x7f

/** Whether the request may mark a part for the provider's prompt cache. */
export function hasCacheMark(body: Uint8Array): boolean {
  return (hasBytes(body, cacheWord) && hasWord(body, cacheWords)) || hasEscaped(body, underscore, lowerZ)
}

/** Whether the request may choose the region of inference. */
export function mayNameRegion(body: Uint8Array): boolean {
  return hasBytes(body, geoWord) || hasEscaped(body, underscore, lowerZ)
}

/** Whether the body may contain more than text, so that its size says little about its tokens. */
export function mayHaveMoreThanText(body: Uint8Array): boolean {
  return hasWord(body, mediaWords) || hasUrlValue(body) || hasEscaped(body, space, lastAscii)
}

function hasWord(body: Uint8Array, words: readonly Uint8Array[]): boolean {
  for (const word of words) if (hasBytes(body, word)) return true
  return false
}

/** Whether a character of the range is written as `\u00..`. */
function hasEscaped(body: Uint8Array, first: number, last: number): boolean {
  const found = findBytes(body, escapeWord)
  if (found === -1) return false
  // Byte by byte from here: a body may consist of escapes, and each search costs more than the bytes it skips.
  for (let at = found; at < body.length - 5; at++) {
    if (body[at] !== backslash) continue
    at++
    if (body[at] !== lowerU || body[at + 1] !== zero || body[at + 2] !== zero) continue
    const code = hexDigit(body[at + 3] ?? 0) * 16 + hexDigit(body[at + 4] ?? 0)
    if (code >= first && code <= last) return true
  }
  return false
}

function hasUrlValue(body: Uint8Array): boolean {
  for (let at = findBytes(body, urlWord); at !== -1; at = findBytes(body, urlWord, at + 1)) {
    let before = at - 1
    while (before > 0 && (body[before] ?? 0) <= space) before--
    if (body[before] === colon) return true
  }
  return false
}

// ── Bounds of the input ──

/** Allowance for the provider's prompt around the text: roles, tool instructions. */
const overheadTokens = 1024
/** The most that a provider adds to a prompt and counts: its own instructions, and definitions of tools that it hosts. */
const addedTokensMax = 4_096
/** Used where the body does not tell and the catalog has no `context_tokens`. */
const contextTokensUnknown = 1_048_576

/** Parsing blocks the event loop for milliseconds per megabyte; larger bodies count as a full context window. */
export const parsedBytesMax = 8 * 1024 * 1024

interface ContextWindow {
  readonly contextTokens: number | undefined
}

/** The window of an embedding model holds one text; a request may have thousands of them. */
export function windowOf({ embeddings }: Pick<Envelope, 'embeddings'>, model: ContextWindow): ContextWindow {
  return embeddings ? unknownWindow : model
}

const unknownWindow: ContextWindow = { contextTokens: undefined }

/** Tokens of text. `ratio` corrects the assumption of four bytes per token for the model. */
function textTokens(bytes: number, ratio: number): number {
  return Math.ceil((Math.max(0, bytes) / bytesPerToken) * ratio)
}

/** The expected input tokens. `parse` is called only for bodies with media; undefined = it could not be parsed. */
export function expectedInputTokens(
  body: Uint8Array,
  ratio: number,
  parse: () => Conversation | undefined,
  { contextTokens }: ContextWindow,
  isMoreThanText = mayHaveMoreThanText(body),
): number {
  if (!isMoreThanText) return atMost(contextTokens, textTokens(body.length, ratio))
  const conversation = body.length > parsedBytesMax ? undefined : parse()
  if (!isFullyKnown(conversation)) return contextTokens ?? body.length + overheadTokens
  let textBytes = body.length
  let tokens = 0
  for (const block of mediaOf(conversation)) {
    textBytes -= dataBytes(block)
    tokens += mediaTokens(block).held
  }
  return atMost(contextTokens, textTokens(textBytes, ratio) + tokens)
}

/** Tokens of a byte of text, with the ratio of the model. */
export function tokensPerByte(ratio: number): number {
  return ratio / bytesPerToken
}

/** Whether its size says how many tokens a text has: small bodies are mostly JSON around it. */
export function isLongText(bytes: number, isMoreThanText: boolean): boolean {
  return bytes >= learnedBytesMin && !isMoreThanText
}

/** An upper bound of the input tokens: no tokenizer makes more than one token of a byte. */
export function boundedInputTokens(
  body: Uint8Array,
  conversation: Conversation | undefined,
  { contextTokens }: ContextWindow,
): number {
  if (!isFullyKnown(conversation) && contextTokens !== undefined) return contextTokens
  let tokens = body.length + overheadTokens
  for (const block of conversation ? mediaOf(conversation) : []) tokens += mediaTokens(block).held - dataBytes(block)
  return atMost(contextTokens, tokens)
}

/**
 * The most input tokens that a provider can truthfully report for reading the body once: one for each byte, what
 * providers add, and the maximum for images and documents. The context window is the bound where only the provider knows
 * what it reads: a document at a URL, its own tools and files.
 */
export function maxReportedInput(
  body: Uint8Array,
  parse: () => Conversation | undefined,
  { contextTokens = contextTokensUnknown }: ContextWindow,
  isMoreThanText = mayHaveMoreThanText(body),
): number {
  let tokens = body.length + addedTokensMax
  if (isMoreThanText) {
    const conversation = body.length > parsedBytesMax ? undefined : parse()
    if (!isFullyKnown(conversation)) return contextTokens
    for (const block of mediaOf(conversation)) tokens += mediaTokens(block).max - dataBytes(block)
  }
  return Math.min(contextTokens, tokens)
}

/** Whether the input may contain audio. Videos do, and the content at a URL is unknown. */
export function mayHaveAudio(conversation: Conversation | undefined): boolean {
  if (!isFullyKnown(conversation)) return true
  return mediaOf(conversation).some(({ kind, source }) => {
    if (source.kind === 'text' || (kind === 'image' && source.kind === 'data')) return false
    return source.kind !== 'data' || !/^(text|image)\/|^application\/pdf$/.test(source.mediaType)
  })
}

/** False if the provider may add input that is not in the body, from its own tools or files. */
function isFullyKnown(conversation: Conversation | undefined): conversation is Conversation {
  return conversation !== undefined && !conversation.unsupported.some(({ addsInput }) => addsInput)
}

function atMost(contextTokens: number | undefined, tokens: number): number {
  return contextTokens === undefined ? tokens : Math.min(contextTokens, tokens)
}

function mediaOf({ turns }: Conversation): readonly MediaBlock[] {
  return turns.flatMap(({ role, blocks }) => {
    if (role !== 'user') return []
    const all = blocks.flatMap((block) => (block.kind === 'tool-result' ? block.content : [block]))
    return all.filter((block) => block.kind === 'image' || block.kind === 'document')
  })
}

/** Bytes of the body that are media data and not text. */
function dataBytes({ source }: MediaBlock): number {
  return source.kind === 'data' ? source.base64.length : 0
}

// ── Tokens of media ──

/** The tokens of an image or a document, which is not decoded here. */
interface MediaTokens {
  /** For a count. */
  readonly usual: number
  /** For a hold, which should cover them in most models. */
  readonly held: number
  /** A provider that reports more is not believed. */
  readonly max: number
}

/**
 * Providers charge by pixels: for a common size 1,600 tokens, at most 5,000 in current models. gpt-4o-mini counts the most
 * for an image of any size: 2,833, and 5,667 for each of six tiles, in total 36,835.
 */
const imageTokens: MediaTokens = { usual: 1_600, held: 5_000, max: 40_000 }
/** Providers accept documents of at most 100 pages of 3,000 tokens. */
const documentTokensMax = 300_000
const linkedDocumentTokens: MediaTokens = { usual: 1_600, held: documentTokensMax, max: Number.POSITIVE_INFINITY }
/** The text of a document is counted as text. */
const noTokens: MediaTokens = { usual: 0, held: 0, max: 0 }
/** A page of a PDF is read as text and as an image. */
const pdfBytesPerToken = 25
/** For pages with many tokens per byte, in characters of base64. */
const pdfBase64PerToken = 10
/** Models differ in how many tokens a second of audio is; `audioTokens` assumes a common one. */
const audioFactor = 4

function mediaTokens({ kind, source }: MediaBlock): MediaTokens {
  if (source.kind === 'text') return noTokens
  if (kind === 'image') return imageTokens
  if (source.kind === 'url') return linkedDocumentTokens
  const { mediaType, base64 } = source
  if (mediaType.startsWith('audio/')) {
    const usual = audioTokens(mediaType, base64.length)
    return { usual, held: audioFactor * usual, max: base64.length }
  }
  return {
    usual: Math.ceil(decodedBytes(base64.length) / pdfBytesPerToken),
    held: Math.ceil(base64.length / pdfBase64PerToken),
    // A small page may have thousands.
    max: Math.max(base64.length, documentTokensMax),
  }
}

/**
 * Audio is about 32 tokens a second: raw speech samples are 32,000 bytes a second (16 kHz, 16 bit, mono), mp3 and flac
 * about 16,000, and speech codecs 4,000 or less.
 */
const audioBytesPerToken: Readonly<Record<string, number>> = {
  ...{ 'audio/wav': 1000, 'audio/aiff': 1000 },
  ...{ 'audio/mp3': 500, 'audio/mpeg': 500, 'audio/flac': 500 },
}
/** Overestimates formats that are not in the table. */
const audioBytesPerTokenMin = 125

export function audioTokens(mediaType: string, base64Length: number): number {
  return Math.ceil(decodedBytes(base64Length) / (audioBytesPerToken[mediaType] ?? audioBytesPerTokenMin))
}

function decodedBytes(base64Length: number): number {
  return (base64Length * 3) / 4
}

// ── Counting a conversation ──

// Without a tokenizer: for answers whose usage is missing, and for the endpoints that count tokens.

/** Tokens of a turn beside its text: role and delimiters. */
const turnTokens = 4

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
    case 'document':
      yield block.source.kind === 'text' ? block.source.text : mediaTokens(block).usual
  }
}

// ── Learned tokens per byte ──

const initialRatio = 1.5
/** Bounds the hold, whatever a provider reports. */
const ratioMax = 4
/** Small bodies are mostly JSON around the text, so their ratio says nothing. */
const learnedBytesMin = 1024
/** High ratios decay slowly: the hold must cover the next prompt, not the average one. */
const decay = 0.999

/** Learns from reported usage how many tokens each model makes of four bytes, so that holds fit. */
export class InputRatios {
  readonly #byModel = new Map<string, number>()

  of(modelId: string): number {
    return this.#byModel.get(modelId) ?? initialRatio
  }

  learn(modelId: string, bodyBytes: number, usage: Usage, isMoreThanText = false): void {
    const isReported = usage.source === 'reported' || usage.inputReported
    // Tokens of an image or of a provider's tool say nothing about text.
    if (!isReported || !isLongText(bodyBytes, isMoreThanText)) return
    const seen = totalInputTokens(usage) / textTokens(bodyBytes, 1)
    // Some hosts report zeros until they know.
    if (seen === 0) return
    const known = this.of(modelId)
    this.#byModel.set(modelId, Math.min(ratioMax, Math.max(seen, known * decay + seen * (1 - decay), 1)))
  }
}
