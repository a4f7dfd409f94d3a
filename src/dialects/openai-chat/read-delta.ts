// What a delta says, under the names that hosts use for it:
//
//   text       content, a string or a list of text parts
//   thinking   reasoning_content, reasoning, the texts in reasoning_details; thinking parts in a list of content
//   refusal    refusal, refusal parts
//   calls      tool_calls, and the older function_call
//
// Hosts that send reasoning under two names send the same words, so the first name that is filled counts.

import { isRecord, recordOf, textOf } from '../canonical/json.ts'
import type { CallFragment } from './tool-call-merge.ts'

export interface DeltaPiece {
  readonly kind: 'text' | 'thinking' | 'refusal'
  readonly text: string
}

/** In the order in which a reader would see them. */
export function readPieces(delta: Record<string, unknown>): DeltaPiece[] {
  const pieces: DeltaPiece[] = [{ kind: 'thinking', text: thinkingOf(delta) }]
  if (Array.isArray(delta.content)) pieces.push(...delta.content.map(readPart))
  else pieces.push({ kind: 'text', text: textOf(delta.content) })
  pieces.push({ kind: 'refusal', text: textOf(delta.refusal) })
  return pieces.filter(({ text }) => text !== '')
}

function thinkingOf(delta: Record<string, unknown>): string {
  return (
    textOf(delta.reasoning_content) ||
    textOf(delta.reasoning) ||
    readDetails(delta)
      .map((detail) => textOf(detail.text) || textOf(detail.summary))
      .join('')
  )
}

function readPart(part: unknown): DeltaPiece {
  if (!isRecord(part)) return { kind: 'text', text: '' }
  if (part.type === 'refusal') return { kind: 'refusal', text: textOf(part.refusal) }
  if (part.type !== 'thinking') return { kind: 'text', text: textOf(part.text) }
  const inner: unknown[] = Array.isArray(part.thinking) ? part.thinking : [part.thinking]
  return { kind: 'thinking', text: inner.map((each) => textOf(isRecord(each) ? each.text : each)).join('') }
}

/** The entries of reasoning_details. */
export function readDetails(delta: Record<string, unknown>): Record<string, unknown>[] {
  return Array.isArray(delta.reasoning_details) ? delta.reasoning_details.filter(isRecord) : []
}

/** `rawArguments` gives the text of arguments that a host sent as an object instead of as its text. */
export function readCalls(
  delta: Record<string, unknown>,
  rawArguments: (place: readonly (string | number)[]) => string,
): CallFragment[] {
  if (isRecord(delta.function_call)) {
    const { name, arguments: written } = delta.function_call
    const text = isRecord(written) ? rawArguments(['function_call', 'arguments']) : textOf(written)
    return [{ index: undefined, id: '', name: textOf(name), custom: false, arguments: text, isFurther: false }]
  }
  const entries: unknown[] = Array.isArray(delta.tool_calls) ? delta.tool_calls : []
  return entries.flatMap((entry, place) => {
    if (!isRecord(entry)) return []
    const called = recordOf(entry.function)
    const custom = isRecord(entry.custom) ? entry.custom : undefined
    const text = isRecord(called.arguments)
      ? rawArguments(['tool_calls', place, 'function', 'arguments'])
      : textOf(called.arguments)
    return {
      index: typeof entry.index === 'number' ? entry.index : undefined,
      id: textOf(entry.id),
      name: textOf(custom?.name) || textOf(called.name),
      custom: custom !== undefined,
      arguments: textOf(custom?.input) || text,
      isFurther: place > 0,
    }
  })
}
