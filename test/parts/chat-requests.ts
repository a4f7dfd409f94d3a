// For tests of the request parser and renderer: a body in, a Conversation or a parsed upstream body out.

import type { Conversation } from '../../src/dialects/canonical/conversation.ts'
import type { ParsedRequest, Target } from '../../src/dialects/canonical/translation.ts'
import { readEnvelope } from '../../src/dialects/openai-chat/envelope.ts'
import { parseRequest } from '../../src/dialects/openai-chat/request/parse.ts'
import { renderRequest } from '../../src/dialects/openai-chat/request/render.ts'
import { Failure } from '../../src/kernel/failure.ts'
import { conversation, rendererOf, targetOf } from './translation.ts'

/** `body` as text, or an object that gets a model. */
export function parseResult(body: string | object): ParsedRequest | Failure {
  const text = typeof body === 'string' ? body : JSON.stringify({ model: 'm', ...body })
  const envelope = readEnvelope(new TextEncoder().encode(text))
  return envelope instanceof Failure ? envelope : parseRequest(envelope)
}

export function parsed(body: string | object): Conversation & { readonly warned: readonly string[] } {
  const result = parseResult(body)
  if (result instanceof Failure) throw new Error(`refused: ${result.message} (${result.facts.param})`)
  return { ...result.conversation, warned: result.warnings.map(({ code, field }) => `${code} ${field}`) }
}

/** The refusal: its param and message. */
export function refusedParse(body: string | object): { param: string | undefined; message: string } {
  return refusal(parseResult(body))
}

export const emptyConversation: Conversation = conversation({ outputCap: undefined })

export const targetWith = targetOf('up-1', 'acme/openai-chat')
const chat = rendererOf(renderRequest, targetWith)

export function rendered(parts: Partial<Conversation>, target?: Target) {
  const { json, body, warnings, mapping } = chat.rendered({ ...emptyConversation, ...parts }, target)
  return { text: json, body, warned: warnings.map((warning) => warning.replace(';', ' ')), mapping }
}

export const refusedRender = (parts: Partial<Conversation>, target?: Target) =>
  refusal(chat.refusalOf({ ...emptyConversation, ...parts }, target))

function refusal(result: object): { param: string | undefined; message: string } {
  if (!(result instanceof Failure)) throw new Error('not refused')
  return { param: result.facts.param, message: result.message }
}
