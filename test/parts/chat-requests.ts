// For tests of the request parser and renderer: a body in, a Conversation or a parsed upstream body out.

import type { Conversation } from '../../src/dialects/canonical/conversation.ts'
import type { TargetRules } from '../../src/dialects/canonical/target-rules.ts'
import type { ParsedRequest, RenderedRequest, Target } from '../../src/dialects/canonical/translation.ts'
import { readEnvelope } from '../../src/dialects/openai-chat/envelope.ts'
import { parseRequest } from '../../src/dialects/openai-chat/request/parse.ts'
import { renderRequest } from '../../src/dialects/openai-chat/request/render.ts'
import { Failure } from '../../src/kernel/failure.ts'

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

/** What was refused: the param and the message. */
export function refusedParse(body: string | object): { param: string | undefined; message: string } {
  return refusal(parseResult(body))
}

export const emptyConversation: Conversation = {
  system: [],
  turns: [{ role: 'user', blocks: [{ kind: 'text', text: 'hi' }] }],
  tools: [],
  toolChoice: undefined,
  parallelTools: undefined,
  sampling: {},
  outputCap: undefined,
  stop: [],
  reasoning: undefined,
  outputFormat: undefined,
  endUserId: undefined,
  serviceTier: undefined,
  verbosity: undefined,
  promptCacheKey: undefined,
  automaticCache: undefined,
  stream: false,
  wantsStreamUsage: false,
  unsupported: [],
}

export function targetWith(rules: TargetRules = {}, facts: Partial<Target> = {}): Target {
  return {
    upstreamModel: 'up-1',
    issuer: 'acme/openai-chat',
    rules,
    defaultOutputCap: undefined,
    maxOutputTokens: undefined,
    ...facts,
  }
}

export interface Rendered {
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into upstream bodies of any shape
  readonly body: any
  readonly warned: readonly string[]
  readonly mapping: RenderedRequest['mapping']
}

export function rendered(conversation: Partial<Conversation>, target: Target = targetWith()): Rendered {
  const result = renderRequest({ ...emptyConversation, ...conversation }, target)
  if (result instanceof Failure) throw new Error(`refused: ${result.message} (${result.facts.param})`)
  const text = new TextDecoder().decode(result.body)
  const warned = result.warnings.map(({ code, field }) => `${code} ${field}`)
  return { text, body: JSON.parse(text), warned, mapping: result.mapping }
}

export function refusedRender(
  conversation: Partial<Conversation>,
  target: Target = targetWith(),
): { param: string | undefined; message: string } {
  return refusal(renderRequest({ ...emptyConversation, ...conversation }, target))
}

function refusal(result: object): { param: string | undefined; message: string } {
  if (!(result instanceof Failure)) throw new Error('not refused')
  return { param: result.facts.param, message: result.message }
}
