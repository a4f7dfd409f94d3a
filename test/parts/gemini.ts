// For tests of the gemini dialect: targets, requests rendered and parsed again, and records of a provider.

import type { Conversation } from '../../src/dialects/canonical/conversation.ts'
import type { TargetRules } from '../../src/dialects/canonical/target-rules.ts'
import type { RenderedRequest, Target } from '../../src/dialects/canonical/translation.ts'
import { renderRequest } from '../../src/dialects/gemini/request/render.ts'
import { Failure } from '../../src/kernel/failure.ts'
import { conversation } from './translation.ts'

/** Facts of some models, by short names: Gemini 3, 2.5 Flash and Pro, and 2.0, which does not think. */
export const geminis = {
  g3: { efforts: ['low', 'medium', 'high'], thinksByDefault: true },
  flash25: { efforts: [], thinking: ['enabled', 'disabled'], thinksByDefault: true, penalties: false },
  pro25: { efforts: [], thinking: ['enabled'], thinksByDefault: true },
  g20: { efforts: [], thinking: [], thinksByDefault: false },
} as const satisfies Record<string, TargetRules>

export const issuer = 'acme/gemini/g'

export function geminiTarget(rules: TargetRules = geminis.g3, facts: Partial<Target> = {}): Target {
  return {
    upstreamModel: 'g-1',
    issuer,
    rules,
    defaultOutputCap: undefined,
    maxOutputTokens: undefined,
    ...facts,
  }
}

export interface RenderedGemini {
  /** The body as the provider parses it. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  readonly body: any
  /** The body as it is written. */
  readonly json: string
  /** `code;field` of each warning. */
  readonly warnings: readonly string[]
  readonly mapping: RenderedRequest['mapping']
}

/** A refusal fails the test. */
export function rendered(parts: Partial<Conversation>, at: Target | TargetRules = {}): RenderedGemini {
  const result = renderRequest(conversation(parts), 'rules' in at ? at : geminiTarget(at))
  if (result instanceof Failure) throw new Error(`refused: ${result.message}`)
  const json = new TextDecoder().decode(result.body)
  const warnings = result.warnings.map(({ code, field }) => `${code};${field}`)
  return { body: JSON.parse(json), json, warnings, mapping: result.mapping }
}

/** What the refusal says; an accepted request fails the test. */
export function refusedBy(parts: Partial<Conversation>, at: Target | TargetRules = {}): string {
  const result = renderRequest(conversation(parts), 'rules' in at ? at : geminiTarget(at))
  if (!(result instanceof Failure)) throw new Error('was not refused')
  return `${result.facts.param}: ${result.message}`
}

export const record = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
/** A record of a reply; `more` are members beside the candidate. */
export const said = (parts: readonly object[], finishReason?: string, more: object = {}): string =>
  record({
    candidates: [{ content: { role: 'model', parts }, ...(finishReason === undefined ? {} : { finishReason }) }],
    responseId: 'r1',
    ...more,
  })
