// Reasoning: thought signatures, which the provider wants back; how much the model should think; and reasoning of other
// models, which travels inside `thoughtSignature`.
//
// A thought signature can be on any kind of part, but in the canonical form only thinking blocks carry one. So each
// travels in a signature of ours, together with the part it belongs to.

import {
  type AssistantBlock,
  type Conversation,
  type Effort,
  pointerTo,
  type RawJson,
  type ReasoningBlock,
  type ReasoningSettings,
  type ThinkingBlock,
  type Turn,
  turnPointer,
} from '../canonical/conversation.ts'
import { filledObject, isRecord, jsonString, type Members, parseJson, parseRecord, textOf } from '../canonical/json.ts'
import { blobFor, isDisplayOnly } from '../canonical/signature.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import type { WarningList } from '../request/fields.ts'
import { budgetOfEffort, isThinking, nearestEffort, proofOf, wantedEffort } from '../request/reasoning.ts'
import type { RulesAndWarnings } from '../request/settings.ts'

export type SignedPart =
  /** On the thought of this block, or on the last text of its turn. */
  | { readonly part: 'thought' | 'text'; readonly signature: string }
  /** On a call, identified by the caller's id, because callers may return calls and thinking in another order. */
  | { readonly part: 'call'; readonly id: string; readonly signature: string }

/** The data of a signature of ours. */
export function writeBlob(signed: SignedPart): string {
  return JSON.stringify(signed)
}

/** undefined if `issuer` did not issue it. */
export function readProof(proof: string | undefined, issuer: string): SignedPart | undefined {
  const blob = parseRecord(blobFor(issuer, proof) ?? '')
  const part = blob?.part
  const signature = textOf(blob?.signature)
  if (signature === '') return undefined
  if (part === 'call') return { part, id: textOf(blob?.id), signature }
  return part === 'thought' || part === 'text' ? { part, signature } : undefined
}

// Restores the thought signatures of a history to the parts they came from: the thought, the text or the call.
// Reasoning of other issuers is dropped.

/** A text or call with the signature of its part. Code that copies such blocks must keep the member. */
type Signed<Block> = Block & { readonly thoughtSignature?: string }

export function signatureOf(block: Signed<AssistantBlock>): string | undefined {
  return block.thoughtSignature
}

/** The turns with the reasoning that goes back to `issuer`. Any signature left on a thought was issued by it. */
export function restoreThinking(turns: readonly Turn[], issuer: string, warnings: WarningList): Turn[] {
  let calls = new Map<string, string>()
  return turns.map((turn, i) => {
    if (turn.role !== 'assistant') return turn
    // Consecutive assistant turns are one turn to the model.
    if (turns[i - 1]?.role !== 'assistant') calls = callSignatures(turns, i, issuer)
    const text = turn.blocks
      .flatMap((block) => signedPartOf(block, issuer) ?? [])
      .findLast(({ part }) => part === 'text')
    const last = turn.blocks.findLast((block) => block.kind === 'text' && block.text !== '')
    const blocks = turn.blocks.flatMap((block): Signed<AssistantBlock>[] => {
      if (isThinking(block)) return restored(block, issuer, () => warnings.add('thinking_dropped', turnPointer(turn)))
      if (block === last && text) return [{ ...block, thoughtSignature: text.signature }]
      const signature = block.kind === 'tool-call' ? calls.get(block.id) : undefined
      return [signature === undefined ? block : { ...block, thoughtSignature: signature }]
    })
    return { ...turn, blocks }
  })
}

/** By call id, from consecutive assistant turns. */
function callSignatures(turns: readonly Turn[], from: number, issuer: string): Map<string, string> {
  const found = new Map<string, string>()
  for (let i = from; turns[i]?.role === 'assistant'; i++) {
    for (const block of turns[i]?.blocks ?? []) {
      const proof = signedPartOf(block, issuer)
      if (proof?.part === 'call') found.set(proof.id, proof.signature)
    }
  }
  return found
}

function restored(block: ReasoningBlock, issuer: string, warn: () => void): ThinkingBlock[] {
  const proof = signedPartOf(block, issuer)
  if (!proof || block.kind !== 'thinking') {
    // Our signatures without data were only for display.
    if (!isDisplayOnly(proofOf(block))) warn()
    return []
  }
  if (proof.part === 'thought') return [{ ...block, signature: proof.signature }]
  return block.text === '' ? [] : [{ ...block, signature: undefined }]
}

function signedPartOf(block: Turn['blocks'][number], issuer: string): SignedPart | undefined {
  return block.kind === 'thinking' ? readProof(block.signature, issuer) : undefined
}

// The thinking configuration: a level for targets with levels, a token budget for the others. Sending both is refused.
// An explicit "off" becomes at most the lowest setting.

/** Supported by every target with levels. */
const usualLevels: readonly Effort[] = ['low', 'medium', 'high']

/** Ranges for targets that can turn thinking off, and for those that cannot (docs of 2026-11). */
const optionalRange = { min: 512, max: 24_576 }
const alwaysRange = { min: 128, max: 32_768 }
const dynamicBudget = '-1'

/** The value of thinkingConfig; undefined = omit it. */
export function renderThinking(conversation: Conversation, target: RulesAndWarnings): RawJson | undefined {
  const settings = conversation.reasoning
  if (!settings) return undefined
  const warn = (code: string) => target.warnings.add(code, pointerTo(conversation, 'reasoning'))
  const isOff = isTurnedOff(settings)
  const dial = (thinksByLevel(target.rules) ? levelFor : budgetFor)(settings, target.rules, warn)
  return dial && filledObject({ ...dial, includeThoughts: isOff || settings.visible === false ? undefined : 'true' })
}

export function isTurnedOff({ effort, budgetTokens, mode }: ReasoningSettings): boolean {
  return effort === 'none' || budgetTokens === 0 || mode === 'off' || mode === 'between-tools'
}

/**
 * Whether the target takes a thinking level, introduced with Gemini 3. Older models take a budget (`thinking` includes
 * enabled) or do not think (`efforts` is empty). Gemini 3 brought three more changes that have no rules of their own:
 * calls in the history must be signed, JSON output and functions can be combined, and media are accepted in function
 * responses, unless a rule says otherwise.
 */
export function thinksByLevel({ efforts, thinking }: TargetRules): boolean {
  return !thinking?.includes('enabled') && (efforts === undefined || efforts.length > 0)
}

/** undefined = the target does not think. */
type Dial = Members | undefined

function levelFor(settings: ReasoningSettings, rules: TargetRules, warn: (code: string) => void): Dial {
  const known = (rules.efforts ?? usualLevels).filter((level) => level !== 'none')
  const [min] = known
  if (min === undefined) return {}
  if (isTurnedOff(settings)) {
    if (rules.thinksByDefault === false) return {}
    warn('reasoning_not_disabled')
    return { thinkingLevel: jsonString(min) }
  }
  const wanted = wantedEffort(settings)
  if (wanted === undefined) return {}
  const chosen = nearestEffort(known, wanted)
  if (chosen !== wanted) warn('effort_adjusted')
  return { thinkingLevel: jsonString(chosen) }
}

function budgetFor(settings: ReasoningSettings, rules: TargetRules, warn: (code: string) => void): Dial {
  const isOff = isTurnedOff(settings)
  if (!rules.thinking?.includes('enabled')) {
    if (!isOff) warn('reasoning_dropped')
    return undefined
  }
  const canBeOff = rules.thinking.includes('disabled')
  const { min, max } = canBeOff ? optionalRange : alwaysRange
  if (isOff) {
    if (canBeOff) return { thinkingBudget: '0' }
    if (rules.thinksByDefault === false) return undefined
    warn('reasoning_not_disabled')
    return { thinkingBudget: String(min) }
  }
  const wanted = settings.budgetTokens ?? (settings.effort && budgetOfEffort[settings.effort])
  if (wanted === undefined) return settings.mode === undefined ? {} : { thinkingBudget: dynamicBudget }
  const given = Math.min(Math.max(Math.floor(wanted), min), max)
  if (settings.budgetTokens !== undefined && given !== settings.budgetTokens) warn('reasoning_budget_clamped')
  return { thinkingBudget: String(given) }
}

// Reasoning of other models inside `thoughtSignature`, on its way to a caller of this dialect and back. Its clients
// return that member with the text or the call that it came with, and drop the thoughts themselves.

const prefix = 'tgs1'
/** How every one of them starts. */
export const ownSignatureStart = 'dGdzMV'

/** In base64, because clients treat the member as bytes. */
export function writeThoughts(blocks: readonly ReasoningBlock[]): string {
  const written = blocks.map((block) =>
    block.kind === 'thinking' ? { text: block.text, signature: block.signature } : { data: block.data },
  )
  return Buffer.from(prefix + JSON.stringify(written)).toString('base64')
}

/** undefined if it is not ours. Python's client writes the other alphabet, which is read too. */
export function readThoughts(signature: string): readonly ReasoningBlock[] | undefined {
  const text = Buffer.from(signature, 'base64').toString()
  const list = text.startsWith(prefix) ? parseJson(text.slice(prefix.length)) : undefined
  if (!Array.isArray(list)) return undefined
  return list.filter(isRecord).map((each): ReasoningBlock => {
    if (typeof each.data === 'string') return { kind: 'sealed-thinking', data: each.data }
    const signed = typeof each.signature === 'string' ? each.signature : undefined
    return { kind: 'thinking', text: textOf(each.text), signature: signed }
  })
}
