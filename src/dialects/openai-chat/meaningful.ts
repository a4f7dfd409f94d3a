// Whether a chunk holds something a client would show: text, reasoning, a tool call or an ending. Role-only chunks,
// filter results and usage do not; until something does, another provider can still be tried.

import { isRecord, parseRecord } from '../canonical/json.ts'

/** Members of a delta that carry generated output, under the names hosts use. */
const outputNames = [
  ...['content', 'refusal', 'reasoning_content', 'reasoning', 'tool_calls', 'function_call', 'audio', 'images'],
]

export function isMeaningfulChunk(json: string): boolean {
  const choices: unknown = parseRecord(json)?.choices
  return Array.isArray(choices) && choices.some(isMeaningfulChoice)
}

function isMeaningfulChoice(choice: unknown): boolean {
  if (!isRecord(choice)) return false
  if (isEnding(choice.finish_reason)) return true
  const { delta } = choice
  return isRecord(delta) && outputNames.some((name) => isFilled(delta[name]))
}

/** The numbers of the choices that say how they ended. */
export function endedChoices(choices: unknown): unknown[] {
  const list: unknown[] = Array.isArray(choices) ? choices : []
  return list.flatMap((choice) => (isRecord(choice) && isEnding(choice.finish_reason) ? [choice.index ?? 0] : []))
}

/** `error` ends nothing well: with nothing before it, it is no answer. */
function isEnding(finishReason: unknown): boolean {
  return typeof finishReason === 'string' && finishReason !== '' && finishReason !== 'error'
}

/** Whether a whole reply has neither content nor a proper end. */
export function isEmptyReply({ choices }: Record<string, unknown>): boolean {
  if (!Array.isArray(choices)) return true
  return choices.every((choice) => {
    if (!isRecord(choice) || isEnding(choice.finish_reason)) return !isRecord(choice)
    const { message } = choice
    return !isRecord(message) || !outputNames.some((name) => isFilled(message[name]))
  })
}

function isFilled(value: unknown): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0
  return isRecord(value)
}
