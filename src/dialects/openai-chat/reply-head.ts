// What every record of a Chat Completions reply begins with, and what its ending is made of.

import type { RawJson } from '../canonical/conversation.ts'
import { jsonString } from '../canonical/json.ts'
import type { Stop } from '../canonical/reply.ts'
import type { RenderContext } from '../canonical/translation.ts'
import { finishReasons } from './stop-reason.ts'

const idMax = 200

/** The members id, object, created and model, without the braces. */
export function replyHead(object: string, id: string | undefined, context: RenderContext): string {
  const own = (id ?? context.requestId).slice(0, idMax).toWellFormed()
  const name = own.startsWith('chatcmpl-') ? own : `chatcmpl-${own}`
  return `"id":${jsonString(name)},"object":"${object}","created":${context.createdSeconds},"model":${jsonString(context.model)}`
}

/** The members that tell why a choice ended; the last two are extensions that some hosts have. */
export function finishMembers(stop: Stop, context: RenderContext): (readonly [string, RawJson | undefined])[] {
  const isLegacyCall = context.legacyCalls === true && stop.unified === 'tool-calls'
  return [
    ['finish_reason', isLegacyCall ? '"function_call"' : jsonString(finishReasons[stop.unified])],
    ['stop_reason', stop.sequence === undefined ? undefined : jsonString(stop.sequence.toWellFormed())],
    ['native_finish_reason', stop.unified === 'pause' ? jsonString(stop.raw.toWellFormed()) : undefined],
  ]
}

/** The words of a refusal that came without any. */
export function refusalText(stop: Stop): string {
  return stop.explanation ?? 'The model declined to answer this request.'
}
