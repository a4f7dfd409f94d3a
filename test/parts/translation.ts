// Canonical requests and targets for tests of the translation lane: only what a test is about has to be said.

import { anthropicMessages } from '../../src/dialects/anthropic-messages/index.ts'
import { parseRequest } from '../../src/dialects/anthropic-messages/request/parse.ts'
import { renderRequest } from '../../src/dialects/anthropic-messages/request/render.ts'
import type {
  AssistantBlock,
  Conversation,
  TextBlock,
  Turn,
  UserBlock,
} from '../../src/dialects/canonical/conversation.ts'
import type { TargetRules } from '../../src/dialects/canonical/target-rules.ts'
import type { SentRequest, Target, Translation } from '../../src/dialects/canonical/translation.ts'
import { Failure } from '../../src/kernel/failure.ts'

export const text = (words: string): TextBlock => ({ kind: 'text', text: words })
export const user = (...blocks: (string | UserBlock)[]): Turn => ({ role: 'user', blocks: blocks.map(asBlock) })
export const assistant = (...blocks: (string | AssistantBlock)[]): Turn => ({
  role: 'assistant',
  blocks: blocks.map(asBlock),
})
export const system = (...blocks: (string | TextBlock)[]): Turn => ({ role: 'system', blocks: blocks.map(asBlock) })
export const call = (id: string, args = '{}', name = 'f'): AssistantBlock => ({
  kind: 'tool-call',
  id,
  name,
  arguments: args,
  custom: false,
})
export const result = (callId: string, words = 'ok'): UserBlock => ({
  kind: 'tool-result',
  callId,
  content: words === '' ? [] : [text(words)],
  isError: false,
})

function asBlock<Block>(block: string | Block): Block | TextBlock {
  return typeof block === 'string' ? text(block) : block
}

export function conversation(parts: Partial<Conversation> = {}): Conversation {
  return {
    system: [],
    turns: [user('hi')],
    tools: [],
    sampling: {},
    outputCap: 1000,
    stop: [],
    unsupported: [],
    ...parts,
  }
}

/** Facts of some models, by the short names the vectors give them. */
export const models = {
  opus55: {
    sampling: 'none',
    efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
    thinking: ['adaptive'],
    thinksByDefault: true,
    forcedToolChoice: false,
    midSystem: true,
    prefill: false,
    strictTools: true,
  },
  sonnet55: {
    sampling: 'none',
    efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
    thinking: ['adaptive', 'between-tools'],
    thinksByDefault: true,
    effortHighAtMostWith: ['between-tools'],
  },
  sonnet5: {
    efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
    thinking: ['adaptive', 'disabled'],
    thinksByDefault: true,
  },
  opus48: {
    efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
    thinking: ['adaptive', 'disabled'],
    thinksByDefault: false,
  },
  opus46: { efforts: ['low', 'medium', 'high', 'max'], thinking: ['adaptive', 'disabled'], thinksByDefault: false },
  opus45: { efforts: ['low', 'medium', 'high'], thinking: ['enabled', 'disabled'], thinksByDefault: false },
  s45: {
    efforts: [],
    thinking: ['enabled', 'disabled'],
    thinksByDefault: false,
    prefill: true,
    temperatureOrTopP: true,
  },
} as const satisfies Record<string, TargetRules>

/** A target of the given model and issuer, with rules and facts. */
export const targetOf =
  (upstreamModel: string, issuer: string) =>
  (rules: TargetRules = {}, facts: Partial<Target> = {}): Target => ({
    ...{ upstreamModel, issuer, rules, defaultOutputCap: undefined, maxOutputTokens: undefined },
    ...facts,
  })

export const target = targetOf('claude-upstream', 'anthropic/anthropic-messages')

/** Renders for a dialect, at a target or one with these rules. What a test does not expect, fails it. */
export function rendererOf(render: Translation['renderRequest'], at: (rules: TargetRules) => Target) {
  const renderAt = (parts: Partial<Conversation>, where: Target | TargetRules = {}) =>
    render(conversation(parts), 'rules' in where ? where : at(where))
  const refusalOf = (parts: Partial<Conversation>, where?: Target | TargetRules): Failure => {
    const rendered = renderAt(parts, where)
    if (!(rendered instanceof Failure)) throw new Error('was not refused')
    return rendered
  }
  return {
    /** The body as it is written and as the provider parses it, and `code;field` of each warning. */
    rendered(parts: Partial<Conversation>, where?: Target | TargetRules) {
      const rendered = renderAt(parts, where)
      if (rendered instanceof Failure) throw new Error(`refused: ${rendered.message} (${rendered.facts.param})`)
      const json = new TextDecoder().decode(rendered.body)
      const warnings = rendered.warnings.map(({ code, field }) => `${code};${field}`)
      // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
      return { rendered, body: JSON.parse(json) as any, json, warnings, mapping: rendered.mapping }
    },
    refusalOf,
    /** The field and the message of the refusal. */
    refusedBy(parts: Partial<Conversation>, where?: Target | TargetRules): string {
      const { facts, message } = refusalOf(parts, where)
      return `${facts.param}: ${message}`
    },
  }
}

/** For a Messages provider. */
export const { rendered: renderMessagesBody, refusalOf } = rendererOf(renderRequest, target)

/** The envelope of a Messages body, given as a value or as its very text. */
export function messagesEnvelope(body: object | string): SentRequest {
  const json = typeof body === 'string' ? body : JSON.stringify({ model: 'a/b', max_tokens: 100, ...body })
  const headers = new Headers({ 'anthropic-version': '2023-06-01' })
  const envelope = anthropicMessages.readEnvelope(new TextEncoder().encode(json), headers)
  if (envelope instanceof Failure) throw new Error(`envelope refused: ${envelope.message}`)
  return envelope
}

const hi = [{ role: 'user', content: 'hi' }]

/** Parses a Messages body, which gets a greeting if it has no messages; a refusal fails the test. */
export function parsedMessages(body: object | string) {
  const request = parseRequest(messagesEnvelope(typeof body === 'string' ? body : { messages: hi, ...body }))
  if (request instanceof Failure) throw new Error(`refused: ${request.message} (${request.facts.param})`)
  return { ...request.conversation, warnings: request.warnings.map(({ code, field }) => `${code};${field}`) }
}

export function refusedMessages(body: object): Failure {
  const request = parseRequest(messagesEnvelope({ messages: hi, ...body }))
  if (!(request instanceof Failure)) throw new Error('was not refused')
  return request
}
