// Whether a chunk holds something a client would show: text, reasoning, a tool call or an ending. Role-only chunks,
// filter results and usage do not; until something does, another provider can still be tried.

import { isRecord, parseRecord } from '../canonical/json-value.ts'

/** Members of a delta that carry generated output, under the names hosts use. */
const outputNames = ['content', 'refusal', 'reasoning_content', 'reasoning', 'tool_calls', 'function_call', 'audio']

export function isMeaningfulChunk(json: string): boolean {
  const choices: unknown = parseRecord(json)?.choices
  return Array.isArray(choices) && choices.some(isMeaningfulChoice)
}

function isMeaningfulChoice(choice: unknown): boolean {
  if (!isRecord(choice)) return false
  if (typeof choice.finish_reason === 'string' && choice.finish_reason !== '') return true
  const { delta } = choice
  return isRecord(delta) && outputNames.some((name) => isFilled(delta[name]))
}

function isFilled(value: unknown): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0
  return isRecord(value)
}
