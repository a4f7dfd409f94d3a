// Chat Completions that also takes a body of Responses: Cursor sends one to /v1/chat/completions and expects a chat
// completion. Such a body is always translated.

import { Failure } from '../kernel/failure.ts'
import { JsonFault, readJsonMembers } from '../wire/json-members.ts'
import { EnvelopeFields } from './byte-lane/envelope.ts'
import type { Dialect } from './dialect.ts'
import { openaiChat } from './openai-chat/index.ts'
import { openaiResponses } from './openai-responses/index.ts'

export const openaiChatOrInput: Dialect = {
  ...openaiChat,
  readEnvelope(body, headers, url) {
    const envelope = openaiChat.readEnvelope(body, headers, url)
    if (!(envelope instanceof Failure) || envelope.facts.param !== 'messages') return envelope
    const members = readJsonMembers(body)
    if (members instanceof JsonFault || members.find('messages') || !members.find('input')) return envelope
    const input = openaiResponses.readEnvelope(body, headers, url)
    if (input instanceof Failure) return input
    const options = new EnvelopeFields(body, input.members).value('stream_options')
    return { ...input, wantsStreamUsage: wantsUsage(options), isForeign: true }
  },
  conversationSpans: (envelope) => dialectOf(envelope).conversationSpans(envelope),
  translation: {
    ...openaiChat.translation,
    parseRequest: (envelope, tags) => dialectOf(envelope).translation.parseRequest(envelope, tags),
  },
}

function dialectOf({ isForeign }: { readonly isForeign?: boolean }): Dialect {
  return isForeign ? openaiResponses : openaiChat
}

function wantsUsage(options: unknown): boolean {
  return typeof options === 'object' && options !== null && 'include_usage' in options && options.include_usage === true
}
