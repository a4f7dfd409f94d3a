// From what a behaviour wants to say to what it may say: the output cap and the stop sequences are applied here, once
// for every behaviour, and the usage is counted from what is left.

import type { CachedTokens } from './prefix-cache.ts'
import { type Prompt, promptTokens } from './prompt.ts'
import type { Reply, Step, Stop, ToolCall } from './reply.ts'
import { signThinking } from './thinking-signature.ts'
import { countTokens, splitWords, takeTokens } from './token-count.ts'

/** What every sandbox model can write at most, as its catalog entries say. */
export const outputTokensMax = 64_000

export interface Draft {
  readonly thinking?: string
  readonly text?: string
  readonly calls?: readonly ToolCall[]
  readonly pace?: { readonly firstMs: number; readonly perWordMs: number }
  readonly cached?: CachedTokens
  readonly breaksOff?: boolean
}

export function composeReply(prompt: Prompt, draft: Draft): Reply {
  const budget = Math.min(prompt.outputCap ?? outputTokensMax, outputTokensMax)
  const thinking = takeTokens(draft.thinking ?? '', budget)
  const thinkingTokens = countTokens(thinking)
  const { text, stop: textStop } = fitText(draft.text ?? '', budget - thinkingTokens, prompt.stopSequences)
  const spent = thinkingTokens + countTokens(text)
  const { calls, tokens: callTokens } = fitCalls(draft.calls ?? [], budget - spent)
  const whole = thinking === (draft.thinking ?? '') && calls.length === (draft.calls ?? []).length

  const steps: Step[] = []
  if (draft.pace) steps.push({ kind: 'wait', ms: draft.pace.firstMs })
  if (thinking !== '') {
    const shown = prompt.hidesThinking ? '' : thinking
    for (const word of shown === '' ? [''] : splitWords(shown)) steps.push({ kind: 'think', text: word })
    steps.push({ kind: 'seal', signature: signThinking(shown) })
  }
  steps.push(...textSteps(text, draft))
  for (const call of calls) steps.push({ kind: 'call', call })

  return {
    steps,
    stop: whole ? (calls.length > 0 ? { reason: 'tool-calls' } : textStop) : { reason: 'length' },
    usage: {
      ...inputUsage(promptTokens(prompt), draft.cached),
      outputTokens: spent + callTokens,
      // Only a model that thinks reports thinking; elsewhere it is absent, not zero.
      ...(draft.thinking === undefined ? {} : { reasoningTokens: thinkingTokens }),
      source: 'reported',
    },
    breaksOff: draft.breaksOff ?? false,
  }
}

function fitText(text: string, tokensMax: number, sequences: readonly string[]): { text: string; stop: Stop } {
  // The cap first: a stop sequence counts only if it would have been generated whole.
  const capped = takeTokens(text, tokensMax)
  let end = capped.length
  let matched: string | undefined
  for (const sequence of sequences) {
    const at = sequence === '' ? -1 : capped.indexOf(sequence)
    if (at < 0 || at >= end) continue
    end = at
    matched = sequence
  }
  if (matched !== undefined) return { text: capped.slice(0, end), stop: { reason: 'stop-sequence', sequence: matched } }
  return { text: capped, stop: { reason: capped.length < text.length ? 'length' : 'end' } }
}

/** Whole calls only: half of a call's arguments would be of use to nobody. */
function fitCalls(calls: readonly ToolCall[], tokensMax: number): { calls: ToolCall[]; tokens: number } {
  const fitting: ToolCall[] = []
  let tokens = 0
  for (const call of calls) {
    const cost = countTokens(call.name) + countTokens(call.argumentsText)
    if (tokens + cost > tokensMax) break
    fitting.push(call)
    tokens += cost
  }
  return { calls: fitting, tokens }
}

function textSteps(text: string, { pace, breaksOff }: Draft): Step[] {
  const all = splitWords(text)
  const words = breaksOff ? all.slice(0, Math.ceil(all.length / 2)) : all
  return words.flatMap((word, index): Step[] => {
    const step: Step = { kind: 'text', text: word }
    return pace && index > 0 ? [{ kind: 'wait', ms: pace.perWordMs }, step] : [step]
  })
}

function inputUsage(total: number, cached: CachedTokens | undefined) {
  const { read, writtenShort, writtenLong } = cached ?? { read: 0, writtenShort: 0, writtenLong: 0 }
  return {
    inputTokens: total - read - writtenShort - writtenLong,
    cacheReadTokens: read,
    cacheWriteTokens: writtenShort,
    cacheWriteLongTokens: writtenLong,
  }
}
