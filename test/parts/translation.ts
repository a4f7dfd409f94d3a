// Canonical requests and targets for tests of the translation lane: only what a test is about has to be said.

import { anthropicMessages } from '../../src/dialects/anthropic-messages/index.ts'
import { renderRequest } from '../../src/dialects/anthropic-messages/request/render.ts'
import type {
  AssistantBlock,
  Conversation,
  TextBlock,
  Turn,
  UserBlock,
} from '../../src/dialects/canonical/conversation.ts'
import type { TargetRules } from '../../src/dialects/canonical/target-rules.ts'
import type { Envelope, RenderedRequest, Target } from '../../src/dialects/canonical/translation.ts'
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
    toolChoice: undefined,
    parallelTools: undefined,
    sampling: {},
    outputCap: 1000,
    stop: [],
    reasoning: undefined,
    outputFormat: undefined,
    endUserId: undefined,
    serviceTier: undefined,
    verbosity: undefined,
    promptCacheKey: undefined,
    automaticCache: undefined,
    stream: true,
    wantsStreamUsage: true,
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

export function target(rules: TargetRules = {}, facts: Partial<Target> = {}): Target {
  return {
    upstreamModel: 'claude-upstream',
    issuer: 'anthropic/anthropic-messages',
    rules,
    defaultOutputCap: undefined,
    maxOutputTokens: undefined,
    ...facts,
  }
}

export interface RenderedMessages {
  readonly rendered: RenderedRequest
  /** The body as the provider parses it. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  readonly body: any
  /** The body as it is written. */
  readonly json: string
  /** `code;field` of each warning. */
  readonly warnings: readonly string[]
}

/** Renders for a Messages provider; a refusal fails the test. */
export function renderMessagesBody(parts: Partial<Conversation>, at: Target | TargetRules = {}): RenderedMessages {
  const rendered = renderRequest(conversation(parts), 'rules' in at ? at : target(at))
  if (rendered instanceof Failure) throw new Error(`refused: ${rendered.message}`)
  const json = new TextDecoder().decode(rendered.body)
  const warnings = rendered.warnings.map(({ code, field }) => `${code};${field}`)
  return { rendered, body: JSON.parse(json), json, warnings }
}

/** What the refusal of a rendering says; an accepted request fails the test. */
export function refusalOf(parts: Partial<Conversation>, at: Target | TargetRules = {}): Failure {
  const rendered = renderRequest(conversation(parts), 'rules' in at ? at : target(at))
  if (!(rendered instanceof Failure)) throw new Error('was not refused')
  return rendered
}

/** The envelope of a Messages body, given as a value or as its very text. */
export function messagesEnvelope(body: object | string): Envelope {
  const json = typeof body === 'string' ? body : JSON.stringify({ model: 'a/b', max_tokens: 100, ...body })
  const headers = new Headers({ 'anthropic-version': '2023-06-01' })
  const envelope = anthropicMessages.readEnvelope(new TextEncoder().encode(json), headers)
  if (envelope instanceof Failure) throw new Error(`envelope refused: ${envelope.message}`)
  return envelope
}
