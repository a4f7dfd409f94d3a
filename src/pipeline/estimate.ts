// Tokens and cost of a request before it is sent: what its body may contain, how many tokens that is, and how much to
// hold for it.

import { type Price, priceBound, type UsageBound } from '../catalog/price.ts'
import type {
  AssistantBlock,
  Conversation,
  DocumentBlock,
  ImageBlock,
  TextBlock,
  UserBlock,
} from '../dialects/canonical/conversation.ts'
import type { Nano } from '../kernel/money.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import { estimateTokens } from '../kernel/token-estimate.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import { findBytes, hasBytes } from '../wire/bytes.ts'

const bytesPerToken = 4

// ── Scans of the body ──

const cacheWord = Buffer.from('cache_control')
const geoWord = Buffer.from('inference_geo')
/** Found in bodies with images, documents, audio, files or hosted tools. Plain text may contain them too. */
const mediaWords = [
  ...['base64', '_url"', '"file_id"', '"file_data"', '"input_audio"', '"audio"', 'web_search', '_202'],
  ...['"plugins"', '"search_parameters"', '"mcp_servers"', '"container"'],
].map((word) => Buffer.from(word))
/** As a value, `"type": "url"`; as a name it occurs in many tool schemas. */
const urlWord = Buffer.from('"url"')
/** JSON writers do not escape ASCII in names, so a body that does may hide one of the words above. */
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

/** Whether the request may mark a part for the provider's prompt cache. */
export function hasCacheMark(body: Uint8Array): boolean {
  return hasBytes(body, cacheWord) || hasEscaped(body, underscore, lowerZ)
}

/** Whether the request may choose the region of inference. */
export function mayNameRegion(body: Uint8Array): boolean {
  return hasBytes(body, geoWord) || hasEscaped(body, underscore, lowerZ)
}

/** Whether the body may contain more than text, so that its size says little about its tokens. */
export function mayHaveMedia(body: Uint8Array): boolean {
  return mediaWords.some((word) => hasBytes(body, word)) || hasUrlValue(body) || hasEscaped(body, space, lastAscii)
}

/** Whether a character of the range is written as `\u00..`. */
function hasEscaped(body: Uint8Array, first: number, last: number): boolean {
  const found = findBytes(body, escapeWord)
  if (found === -1) return false
  // Byte by byte from here: a body may consist of escapes, and each search costs more than the bytes it skips.
  for (let at = found; at < body.length - 5; at++) {
    if (body[at] !== backslash) continue
    at++
    if (body[at] !== letterU || body[at + 1] !== zero || body[at + 2] !== zero) continue
    const code = hexDigit(body[at + 3]) * 16 + hexDigit(body[at + 4])
    if (code >= first && code <= last) return true
  }
  return false
}

function hexDigit(byte = 0): number {
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

// ── Counting a conversation ──

/** Tokens of a turn beside its text: role and delimiters. */
const turnTokens = 4
/** An image of common size; providers charge by pixels, which are not decoded here. */
const imageTokens = 1600
/** Bytes of a PDF per token: a page is read as text and as an image. */
const pdfBytesPerToken = 25
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

export function audioTokens(mediaType: string, base64Length: number): number {
  return Math.ceil(decodedBytes(base64Length) / (audioBytesPerToken[mediaType] ?? audioBytesPerTokenMin))
}

function decodedBytes(base64Length: number): number {
  return (base64Length * 3) / 4
}

// ── Bounds of the input ──

/** What surrounds the text in the provider's prompt: roles, tool instructions. */
const overheadTokens = 1024
/** The most that current models read from one image of common size. */
const imageTokensHigh = 5_000
/** A document is read as text and as an image of every page; a page has at least this many bytes of base64 per token. */
const documentBytesPerToken = 10
/** Models differ in how many tokens a second of audio is; the estimate above is for common ones. */
const audioFactor = 4
/** A document behind a URL has an unknown size, but providers accept at most 100 pages of 3,000 tokens. */
const documentTokensMax = 300_000
/** What a provider may add to a prompt and count: its own instructions, and definitions of tools that it hosts. */
const addedTokensMax = 4_096
/** The most that any model counts for one image: gpt-4o-mini takes 2,833 and 5,667 for each of six tiles, 36,835. */
const imageTokensMax = 40_000
/** Used where the body does not tell and the catalog has no `context_tokens`. */
const contextTokensUnknown = 1_048_576

/** Parsing blocks the event loop for milliseconds per megabyte; larger bodies count as a full context window. */
export const parsedBytesMax = 8 * 1024 * 1024

interface ContextWindow {
  readonly contextTokens: number | undefined
}

/** Tokens of text. `ratio` corrects the assumption of four bytes per token for the model. */
export function textTokens(bytes: number, ratio: number): number {
  return Math.ceil((Math.max(0, bytes) / bytesPerToken) * ratio)
}

/** The expected input tokens. `parse` is called only for bodies with media; undefined = it could not be parsed. */
export function expectedInputTokens(
  body: Uint8Array,
  ratio: number,
  parse: () => Conversation | undefined,
  { contextTokens }: ContextWindow,
  hasMedia = mayHaveMedia(body),
): number {
  if (!hasMedia) return atMost(contextTokens, textTokens(body.length, ratio))
  const conversation = body.length > parsedBytesMax ? undefined : parse()
  if (!isFullyKnown(conversation)) return contextTokens ?? body.length + overheadTokens
  let textBytes = body.length
  let tokens = 0
  for (const block of mediaOf(conversation)) {
    textBytes -= dataBytes(block)
    tokens += mediaTokens(block)
  }
  return atMost(contextTokens, textTokens(textBytes, ratio) + tokens)
}

/** An upper bound of the input tokens: no tokenizer makes more than one token of a byte. */
export function boundedInputTokens(
  body: Uint8Array,
  conversation: Conversation | undefined,
  { contextTokens }: ContextWindow,
): number {
  if (!isFullyKnown(conversation) && contextTokens !== undefined) return contextTokens
  let tokens = body.length + overheadTokens
  for (const block of conversation ? mediaOf(conversation) : []) tokens += mediaTokens(block) - dataBytes(block)
  return atMost(contextTokens, tokens)
}

/**
 * The most input tokens that a provider can truthfully report for reading the body once: one for each byte, what
 * providers add, and the maximum for images and documents. The context window is the bound where only the provider knows
 * what it reads: a document behind a URL, its own tools and files.
 */
export function maxReportedInput(
  body: Uint8Array,
  parse: () => Conversation | undefined,
  { contextTokens = contextTokensUnknown }: ContextWindow,
  hasMedia = mayHaveMedia(body),
): number {
  let tokens = body.length + addedTokensMax
  if (hasMedia) {
    const conversation = body.length > parsedBytesMax ? undefined : parse()
    if (!isFullyKnown(conversation)) return contextTokens
    for (const block of mediaOf(conversation)) tokens += mediaTokensMax(block) - dataBytes(block)
  }
  return Math.min(contextTokens, tokens)
}

/** Whether the input may contain audio. Videos do, and the content behind a URL is unknown. */
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
  if (kind === 'image') return imageTokensHigh
  if (source.kind === 'url') return documentTokensMax
  const { mediaType, base64 } = source
  return mediaType.startsWith('audio/')
    ? audioFactor * audioTokens(mediaType, base64.length)
    : Math.ceil(base64.length / documentBytesPerToken)
}

function mediaTokensMax({ kind, source }: MediaBlock): number {
  if (source.kind === 'text') return 0
  if (kind === 'image') return imageTokensMax
  if (source.kind === 'url') return Number.POSITIVE_INFINITY
  // Audio has fewer tokens than bytes; a page of a document may be small and have thousands.
  const { mediaType, base64 } = source
  return mediaType.startsWith('audio/') ? base64.length : Math.max(base64.length, documentTokensMax)
}

/** Bytes of the body that are media data and not text. */
function dataBytes({ source }: MediaBlock): number {
  return source.kind === 'data' ? source.base64.length : 0
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

  learn(modelId: string, bodyBytes: number, usage: Usage, hasMedia = false): void {
    const isReported = usage.source === 'reported' || usage.inputReported
    // Tokens of an image or of a provider's tool say nothing about text.
    if (!isReported || bodyBytes < learnedBytesMin || hasMedia) return
    const seen = totalInputTokens(usage) / textTokens(bodyBytes, 1)
    // Some hosts report zeros until they know.
    if (seen === 0) return
    const known = this.of(modelId)
    this.#byModel.set(modelId, Math.min(ratioMax, Math.max(seen, known * decay + seen * (1 - decay), 1)))
  }
}

// ── The amount to hold ──

/** What determines how much is held for a request. */
export interface HoldFacts extends UsageBound {
  readonly price: Price
  /** The most output tokens of one choice. */
  readonly cap: number
  readonly choices: number
  /** The most web searches that the provider runs for it. */
  readonly webSearches: number
  /** Hold the whole cap at once: the answer is not streamed, or part of what it bills is never visible. */
  readonly holdsWholeCap: boolean
  /** The cap must not be lowered below this: a thinking budget, and one token of text. */
  readonly minCap: number
}

export interface HoldAmount {
  readonly amount: Nano
  readonly inputTokens: number
  /** Over all choices. */
  readonly outputTokens: number
  /** The most output tokens of one choice, lowered where there is no room for more. */
  readonly cap: number
  /** What the cap was lowered to fit into: the wallet's balance, or a spend limit. */
  readonly within?: 'balance' | 'limit'
}

/** Output tokens held at a time while an answer streams. */
export const stepTokens = 4096
/** A request is not started with room for less. */
export const stepTokensMin = 256

/** Holds the input at its highest possible price, and the output up to `step` tokens. */
export function holdAmount(facts: HoldFacts, inputTokens: number, cap: number, step = stepTokens): HoldAmount {
  const outputTokens = (facts.holdsWholeCap ? cap : Math.min(cap, step)) * facts.choices
  const amount = priceBound(facts.price, inputTokens, outputTokens, facts)
  return { amount, inputTokens, outputTokens, cap }
}

/**
 * What must be free for the usual hold: twice as much, in case the estimate is wrong, and at least the price of the whole
 * answer, so that it need not be cut short. A wallet with less gets a hold on a low balance.
 */
export function requiredFree(facts: HoldFacts, usual: HoldAmount): Nano {
  const twice = (usual.amount * 2n) as Nano
  if (facts.holdsWholeCap) return twice
  const whole = holdAmount({ ...facts, holdsWholeCap: true }, usual.inputTokens, usual.cap).amount
  return whole > twice ? whole : twice
}

/** The smallest hold with which a request is started. */
export function smallestHold(facts: HoldFacts, inputTokens: number): HoldAmount {
  return holdAmount({ ...facts, holdsWholeCap: true }, inputTokens, Math.min(facts.cap, stepTokensMin))
}

/** The holds to try on a low balance, largest first; empty = `room` is not enough for any. */
export function holdsWithin(facts: HoldFacts, inputTokens: number, room: Nano): readonly HoldAmount[] {
  const cap = affordableCap(facts, inputTokens, room)
  if (cap < Math.min(facts.cap, stepTokensMin) || cap < Math.min(facts.cap, facts.minCap)) return []
  if (facts.holdsWholeCap) return [holdAmount(facts, inputTokens, cap)]
  const holds: HoldAmount[] = []
  for (let step = stepTokens; step >= stepTokensMin; step /= 2) {
    const hold = holdAmount(facts, inputTokens, cap, step)
    if (hold.amount !== holds.at(-1)?.amount) holds.push(hold)
  }
  return holds
}

/** The largest cap whose whole price fits into `room`; -1 = not even the input fits. */
function affordableCap(facts: HoldFacts, inputTokens: number, room: Nano): number {
  const fits = (cap: number): boolean => priceBound(facts.price, inputTokens, cap * facts.choices, facts) <= room
  if (fits(facts.cap)) return facts.cap
  let low = -1
  let high = facts.cap
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (fits(middle)) low = middle
    else high = middle
  }
  return low
}
