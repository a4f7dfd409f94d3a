// The message object of a reply, whole or at the start of a stream, and the members that tell how it ended.

import type { Usage } from '../../kernel/usage.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import type { Stop } from '../canonical/reply.ts'
import type { RenderContext } from '../canonical/translation.ts'
import { renderUsage } from './render-usage.ts'
import { stopReasons } from './stop-reason.ts'

const idMax = 200

export interface MessageParts {
  /** The provider's. */
  readonly id: string | undefined
  readonly content: readonly RawJson[]
  /** undefined: the reply has only begun. */
  readonly stop: Stop | undefined
  readonly usage: Usage
  readonly cost: string | undefined
}

/** All members that the official types declare. */
export function renderMessage({ id, content, stop, usage, cost }: MessageParts, context: RenderContext): RawJson {
  return jsonObject([
    ['id', jsonString(messageId(id ?? context.requestId))],
    ['type', '"message"'],
    ['role', '"assistant"'],
    ['model', jsonString(context.model)],
    ['content', jsonArray(content)],
    ...stopMembers(stop),
    ['container', 'null'],
    ['diagnostics', 'null'],
    ['usage', renderUsage(usage, cost)],
  ])
}

export function stopMembers(stop: Stop | undefined): (readonly [string, RawJson])[] {
  return [
    ['stop_reason', stop ? jsonString(reasonOf(stop)) : 'null'],
    ['stop_sequence', stop?.sequence === undefined ? 'null' : jsonString(stop.sequence.toWellFormed())],
    ['stop_details', stop?.unified === 'refusal' ? refusalDetails(stop.explanation) : 'null'],
  ]
}

/** A match is told only together with the sequence that matched. */
function reasonOf({ unified, sequence }: Stop): string {
  return unified === 'stop-sequence' && sequence === undefined ? stopReasons.end : stopReasons[unified]
}

function refusalDetails(explanation: string | undefined): RawJson {
  return jsonObject([
    ['type', '"refusal"'],
    ['category', 'null'],
    ['explanation', explanation === undefined ? 'null' : jsonString(explanation.toWellFormed())],
  ])
}

function messageId(id: string): string {
  const own = id.slice(0, idMax).toWellFormed()
  return own.startsWith('msg_') ? own : `msg_${own}`
}
