// The sandbox models by upstream name: each is a function from a prompt to reply events or an error. The output
// cap and the stop sequences are applied here once for every model, and the usage is counted from what is left.

import type { Tool } from '../../dialects/canonical/conversation.ts'
import { parseJson, recordOf } from '../../dialects/canonical/json.ts'
import type { ReplyEvent, Stop } from '../../dialects/canonical/reply.ts'
import { noTokens, type Usage } from '../../kernel/usage.ts'
import type { Passage, Prompt } from './prompt.ts'
import { exampleOf } from './schema-example.ts'
import { countTokens, splitFragments, splitWords, takeTokens } from './tokens.ts'

/** The output maximum of every sandbox model, as its catalog entries say. */
export const outputTokensMax = 64_000

const nothingToEcho = 'The sandbox has nothing to echo: send a user message with some text.'
const noTools = 'No tools were offered, so the sandbox has nothing to call.'
const toolsForbidden = 'The tool choice is none, so the sandbox calls nothing.'
const slowFirstMs = 1_500
const slowPerWordMs = 150
const slowFirstMsMax = 120_000

export type Step = ReplyEvent | { readonly type: 'wait'; readonly ms: number }

export interface Reply {
  readonly steps: readonly Step[]
  /** The connection is cut in the middle of the answer. */
  readonly breaksOff: boolean
}

/** A model that fails on purpose. */
export type Outage = 'throttled' | 'unavailable'

interface Call {
  readonly name: string
  readonly custom: boolean
  readonly arguments: string
}

/** The reply of a model before the cap is applied. */
interface Draft {
  readonly thinking?: string
  readonly text?: string
  readonly calls?: readonly Call[]
  readonly pace?: { readonly firstMs: number; readonly perWordMs: number }
  readonly cached?: CachedTokens
  readonly breaksOff?: boolean
}

export type SandboxModel = (prompt: Prompt) => Draft | Outage

/** State (how often the flaky model was called, which prefixes were seen) lives as long as the returned map. */
export function createModels(): ReadonlyMap<string, SandboxModel> {
  const lookUp = createPrefixCache()
  let flakyCalls = 0
  return new Map<string, SandboxModel>([
    ['echo', echo],
    ['tools', tools],
    ['think', think],
    ['cache', (prompt) => ({ ...echo(prompt), cached: lookUp(prompt.passages) })],
    ['slow', (prompt) => ({ ...echo(prompt), pace: { firstMs: firstWaitMs(prompt), perWordMs: slowPerWordMs } })],
    [
      'flaky-first',
      (prompt) => {
        flakyCalls += 1
        return flakyCalls % 2 === 1 ? 'unavailable' : echo(prompt)
      },
    ],
    ['flaky-second', echo],
    ['throttled', () => 'throttled'],
    ['down', () => 'unavailable'],
    ['breaks-off', (prompt) => ({ ...echo(prompt), breaksOff: true })],
  ])
}

function echo({ conversation: { outputFormat }, lastUserText }: Prompt): Draft {
  if (outputFormat?.kind === 'json-schema') return { text: JSON.stringify(exampleOf(parseJson(outputFormat.schema))) }
  if (outputFormat?.kind === 'json-object') return { text: JSON.stringify({ echo: lastUserText }) }
  return { text: lastUserText.trim() === '' ? nothingToEcho : lastUserText }
}

function tools({ conversation, toolResults, tools: offered, lastUserText }: Prompt): Draft {
  if (toolResults.length > 0) return { text: `The tool said: ${toolResults.join('; ')}` }
  if (conversation.toolChoice?.kind === 'none') return { text: toolsForbidden }
  if (offered.length === 0) return { text: noTools }
  const all = conversation.parallelTools !== false && /\bparallel\b/i.test(lastUserText)
  const chosen = conversation.toolChoice?.kind === 'named' ? offered[0] : harmless(offered)
  const calls = (all ? offered : chosen ? [chosen] : []).map((tool): Call => {
    if (tool.kind === 'custom') return { name: tool.name, custom: true, arguments: 'sandbox' }
    const example = exampleOf(parseJson(tool.schema ?? '{"type":"object"}'))
    // Arguments are an object whatever the schema says; clients accept nothing else.
    return { name: tool.name, custom: false, arguments: JSON.stringify(recordOf(example)) }
  })
  return { calls }
}

/** By the words of a tool's name. Agents offer tools that write files and run commands, and may run them unasked. */
const harmlessWords = /(^|[^a-z])(read|list|ls|glob|grep|search|find|get|view|show|fetch|look|weather|time)/
const harmfulWords =
  /write|edit|delete|remove|create|exec|run|bash|shell|command|patch|apply|kill|move|rename|send|task|agent/

/** The first tool that reads, else the first that neither writes nor runs anything, else the first. */
function harmless(offered: readonly Tool[]): Tool | undefined {
  const wordsOf = ({ name }: Tool) => name.replaceAll(/([a-z])([A-Z])/g, '$1_$2').toLowerCase()
  const safe = offered.filter((tool) => !harmfulWords.test(wordsOf(tool)))
  return safe.find((tool) => harmlessWords.test(wordsOf(tool))) ?? safe[0] ?? offered[0]
}

function think({ conversation: { reasoning }, lastUserText }: Prompt): Draft {
  const question = lastUserText.trim()
  const text = question === '' ? nothingToEcho : `After some thought: ${question}`
  if (reasoning?.effort === 'none' || reasoning?.mode === 'off') return { text }
  const gist = takeTokens(question, 32)
  return { thinking: `The user wrote: ${gist}\nNothing has to be looked up, so I can answer at once.`, text }
}

/** `wait 5s` or `wait 200 ms` in the last user message sets the time to the first event. */
function firstWaitMs({ lastUserText }: Prompt): number {
  const [, count, unit] = /\bwait (\d{1,6}(?:\.\d{1,3})?) ?(ms|s)\b/i.exec(lastUserText) ?? []
  if (count === undefined) return slowFirstMs
  return Math.min(slowFirstMsMax, Math.round(Number(count) * (unit?.toLowerCase() === 'ms' ? 1 : 1_000)))
}

// From a draft to the events of a reply.

export interface ReplyIds {
  readonly reply: string
  call(index: number): string
}

export function composeReply(prompt: Prompt, draft: Draft, ids: ReplyIds): Reply {
  const budget = Math.min(prompt.outputCap ?? outputTokensMax, outputTokensMax)
  const thinking = takeTokens(draft.thinking ?? '', budget)
  const thinkingTokens = countTokens(thinking)
  const { text, stop: textStop } = fitText(draft.text ?? '', budget - thinkingTokens, prompt.conversation.stop)
  const spent = thinkingTokens + countTokens(text)
  const { calls, tokens: callTokens } = fitCalls(draft.calls ?? [], budget - spent)
  const isWhole = thinking === (draft.thinking ?? '') && calls.length === (draft.calls ?? []).length
  const usage: Usage = {
    ...inputUsage(prompt.tokens, draft.cached),
    outputTokens: spent + callTokens,
    // Only a model that thinks reports thinking; elsewhere it is absent, not zero.
    ...(draft.thinking === undefined ? {} : { reasoningTokens: thinkingTokens }),
    source: 'reported',
  }
  const stop = isWhole ? (calls.length > 0 ? stopOf('tool-calls') : textStop) : stopOf('length')
  const shown = prompt.conversation.reasoning?.visible === false ? '' : thinking
  return {
    steps: [
      ...(draft.pace ? [{ type: 'wait', ms: draft.pace.firstMs } as const] : []),
      // At the start, a provider has written one token at most and does not know how much it will think.
      {
        type: 'reply-start',
        id: ids.reply,
        usage: {
          ...inputUsage(prompt.tokens, draft.cached),
          outputTokens: Math.min(1, usage.outputTokens),
          source: 'reported',
        },
      },
      ...(thinking === '' ? [] : thinkingSteps(shown)),
      ...(text === '' ? [] : textSteps(text, draft)),
      ...calls.flatMap((call, index) => callSteps(call, ids.call(index))),
      { type: 'reply-end', stop, usage },
    ],
    breaksOff: draft.breaksOff ?? false,
  }
}

function stopOf(unified: Stop['unified'], sequence?: string): Stop {
  return { unified, raw: '', ...(sequence !== undefined && { sequence }) }
}

function fitText(text: string, tokensMax: number, sequences: readonly string[]): { text: string; stop: Stop } {
  // The cap comes first: a stop sequence counts only if it would have been generated completely.
  const capped = takeTokens(text, tokensMax)
  let end = capped.length
  let matched: string | undefined
  for (const sequence of sequences) {
    const at = sequence === '' ? -1 : capped.indexOf(sequence)
    if (at < 0 || at >= end) continue
    end = at
    matched = sequence
  }
  if (matched !== undefined) return { text: capped.slice(0, end), stop: stopOf('stop-sequence', matched) }
  return { text: capped, stop: stopOf(capped.length < text.length ? 'length' : 'end') }
}

/** Complete calls only: part of a call's arguments is useless. */
function fitCalls(calls: readonly Call[], tokensMax: number): { calls: Call[]; tokens: number } {
  const fitting: Call[] = []
  let tokens = 0
  for (const call of calls) {
    const cost = countTokens(call.name) + countTokens(call.arguments)
    if (tokens + cost > tokensMax) break
    fitting.push(call)
    tokens += cost
  }
  return { calls: fitting, tokens }
}

function thinkingSteps(text: string): Step[] {
  return [
    { type: 'block-start', block: { kind: 'thinking' } },
    ...splitWords(text).map((word): Step => ({ type: 'thinking-delta', text: word })),
    { type: 'signature', signature: signThinking(text) },
    { type: 'block-end' },
  ]
}

function textSteps(text: string, { pace, breaksOff }: Draft): Step[] {
  const all = splitWords(text)
  const words = breaksOff ? all.slice(0, Math.ceil(all.length / 2)) : all
  const deltas = words.flatMap((word, index): Step[] => {
    const step: Step = { type: 'text-delta', text: word }
    return pace && index > 0 ? [{ type: 'wait', ms: pace.perWordMs }, step] : [step]
  })
  return [{ type: 'block-start', block: { kind: 'text' } }, ...deltas, { type: 'block-end' }]
}

function callSteps({ name, custom, arguments: text }: Call, id: string): Step[] {
  return [
    { type: 'block-start', block: { kind: 'tool-call', id, name, custom } },
    ...splitFragments(text).map((fragment): Step => ({ type: 'arguments-delta', text: fragment })),
    { type: 'block-end' },
  ]
}

// Signed thinking. The key is public on purpose: it protects nothing, and a signature must be the same in every
// installation.

const signatureKey = 'sandbox thinking, 2026-11'

export function signThinking(text: string): string {
  return `sandbox.${new Bun.CryptoHasher('sha256', signatureKey).update(text).digest('base64url')}`
}

// A prompt cache that remembers which prefixes it has seen, not their text.

export interface CachedTokens {
  readonly read: number
  readonly writtenShort: number
  readonly writtenLong: number
}

/** Counts the prompt's prefix as read if it was seen before, otherwise as written, and remembers it. */
export function createPrefixCache(entriesMax = 1_000): (passages: readonly Passage[]) => CachedTokens {
  /** In order of last use: a Map keeps insertion order, and a hit is inserted again. */
  const seen = new Map<string, true>()
  return (passages) => {
    const prefix = prefixOf(passages)
    if (prefix.length === 0) return { read: 0, writtenShort: 0, writtenLong: 0 }
    const hasher = new Bun.CryptoHasher('sha256')
    // Lengths distinguish two passages from one that reads like both.
    for (const { from, text } of prefix) hasher.update(`${from} ${text.length}\n${text}\n`)
    const digest = hasher.digest('base64url')
    const isHit = seen.delete(digest)
    seen.set(digest, true)
    const [oldest] = seen.keys()
    if (seen.size > entriesMax && oldest !== undefined) seen.delete(oldest)
    if (isHit) return { read: sumTokens(prefix), writtenShort: 0, writtenLong: 0 }
    // The prompt before a one-hour mark is cached for an hour, the rest of the prefix for five minutes.
    const longEnd = prefix.findLastIndex(({ mark }) => mark === 'long') + 1
    return { read: 0, writtenShort: sumTokens(prefix.slice(longEnd)), writtenLong: sumTokens(prefix.slice(0, longEnd)) }
  }
}

/** Up to the last mark; without a mark, everything but the last turn. */
function prefixOf(passages: readonly Passage[]): readonly Passage[] {
  const marked = passages.findLastIndex(({ mark }) => mark !== undefined)
  if (marked >= 0) return passages.slice(0, marked + 1)
  const lastTurn = passages.reduce((turn, passage) => Math.max(turn, passage.turn), -1)
  return passages.filter(({ turn }) => turn < lastTurn)
}

function sumTokens(passages: readonly Passage[]): number {
  return passages.reduce((sum, { tokens }) => sum + tokens, 0)
}

function inputUsage(total: number, cached: CachedTokens | undefined) {
  const { read, writtenShort, writtenLong } = cached ?? { read: 0, writtenShort: 0, writtenLong: 0 }
  return {
    ...noTokens,
    inputTokens: total - read - writtenShort - writtenLong,
    cacheReadTokens: read,
    cacheWriteTokens: writtenShort,
    cacheWriteLongTokens: writtenLong,
  }
}
