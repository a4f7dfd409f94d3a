// For tests of the gemini dialect: targets, requests rendered and parsed again, and records of a provider.

import type { TargetRules } from '../../src/dialects/canonical/target-rules.ts'
import type { Target } from '../../src/dialects/canonical/translation.ts'
import { renderRequest } from '../../src/dialects/gemini/request/render.ts'
import { rendererOf, targetOf } from './translation.ts'

/** Facts of some models, by short names: Gemini 3, 2.5 Flash and Pro, and 2.0, which does not think. */
export const geminis = {
  g3: { efforts: ['low', 'medium', 'high'], thinksByDefault: true },
  flash25: { efforts: [], thinking: ['enabled', 'disabled'], thinksByDefault: true, penalties: false },
  pro25: { efforts: [], thinking: ['enabled'], thinksByDefault: true },
  g20: { efforts: [], thinking: [], thinksByDefault: false },
} as const satisfies Record<string, TargetRules>

export const issuer = 'acme/gemini/g'

const at = targetOf('g-1', issuer)
export const geminiTarget = (rules: TargetRules = geminis.g3, facts?: Partial<Target>): Target => at(rules, facts)
export const { rendered, refusedBy } = rendererOf(renderRequest, geminiTarget)

export const record = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
/** A record of a reply; `more` are members beside the candidate. */
export const said = (parts: readonly object[], finishReason?: string, more: object = {}): string =>
  record({
    candidates: [{ content: { role: 'model', parts }, ...(finishReason === undefined ? {} : { finishReason }) }],
    responseId: 'r1',
    ...more,
  })
