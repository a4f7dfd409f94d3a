// What the byte lanes of all dialects do with a whole reply: the provider's bytes pass with the model's name and the
// cost spliced in, unless they are an error in disguise or no reply of the dialect.

import type { Usage } from '../../kernel/usage.ts'
import { openBracket } from '../../wire/ascii.ts'
import { JsonSpans } from '../../wire/json-spans.ts'
import { recordOf } from '../canonical/json-value.ts'
import { type ProviderFault, replyFault } from '../canonical/provider-fault.ts'
import type { Dialect } from '../dialect.ts'
import { costEdit, isObject, isPresent, modelEdit, parseSpan, spliceReply, usageEdit } from './reply-edits.ts'

export interface ReplyShape<Content extends string> {
  /** The member that no reply goes without, a list. */
  readonly content: Content
  readUsage(usage: unknown): Usage | undefined
  /** As the dialect shows it. */
  renderUsage(usage: Usage, cost: string): string
  /** Bytes of generated text in the list. */
  outputBytes(content: unknown): number
  readErrorObject(error: unknown): ProviderFault
  /** Whether there is neither content nor a proper end in it: an answer in form only. */
  isEmptyReply(reply: Record<string, unknown>): boolean
}

/** A list with anything to read in it is longer, or worth a look. */
const emptyBytesMost = 300

export function createReplyRelay<Content extends string>({
  content,
  readUsage,
  renderUsage,
  outputBytes,
  readErrorObject,
  isEmptyReply,
}: ReplyShape<Content>): Dialect['relayReply'] {
  // A scratch pad: filled and read within one call, never between two.
  const spans = new JsonSpans<'model' | 'usage' | 'error' | Content>(['model', 'usage', 'error', content])
  return (body, context) => {
    if (!spans.read(body, 0, body.length)) {
      return { fault: replyFault('a reply that is no JSON object, or not all of it') }
    }
    const { model, usage: usageSpan, error } = spans.of
    const list = spans.of[content]
    if (isPresent(body, error)) return { fault: readErrorObject(parseSpan(body, error)) }
    if (list.start < 0 || body[list.start] !== openBracket) return { fault: replyFault(`a reply without ${content}`) }
    if (
      list.end - list.start < emptyBytesMost &&
      isEmptyReply(recordOf(parseSpan(body, { start: 0, end: body.length })))
    ) {
      return { fault: replyFault('an empty answer') }
    }
    const reported = isObject(body, usageSpan) ? readUsage(parseSpan(body, usageSpan)) : undefined
    const usage = context.finalUsage(reported, undefined, () => outputBytes(parseSpan(body, list)))
    const cost = context.costOf(usage)
    const edit =
      usage === reported ? costEdit(body, usageSpan, cost) : usageEdit(body, usageSpan, renderUsage(usage, cost))
    return { body: spliceReply(body, modelEdit(body, model, context.modelJson), edit), usage }
  }
}
