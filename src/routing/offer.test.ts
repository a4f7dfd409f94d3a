import { expect, test } from 'bun:test'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { surfaces } from '../dialects/registry.ts'
import type { Caller } from '../tenancy/caller.ts'
import { attemptFault } from './faults.ts'
import { createHealth } from './health.ts'
import { candidateRecords, explainPlan, type WorkspaceOffer } from './offer.ts'
import type { Candidate, OfferedModel } from './plan.ts'

const clock = { now: () => 0, monotonicMs: () => 0 }

/** Three routes: the first speaks chat, the second messages and is down, the third has a reason for its endpoint. */
function start() {
  const health = createHealth({ clock, random: () => 0.5 })
  const make = (id: string, priority: number, more: Partial<Candidate>) => {
    const names = { providerId: id, baseUrl: 'https://x', upstreamModel: 'm', credentialId: 'platform' }
    const route = { providerId: id, upstreamModel: 'm', priority, weight: 1, timeouts: {} }
    return {
      model: { id: 'acme/large' },
      route,
      provider: { id },
      health: health.route(names),
      dialect: openaiChat,
      ...more,
    } as unknown as Candidate
  }
  const candidates = [
    make('acme', 1, {}),
    make('beta', 2, { dialect: anthropicMessages }),
    make('gamma', 3, { why: 'messages endpoint: tools with reasoning' }),
  ]
  const beta = candidates[1]
  for (let n = 0; n < 5; n++) if (beta) health.recordFault(beta.health, 0, attemptFault('failing'))
  return { health, candidates }
}

const expected = [
  { provider: 'acme', upstreamModel: 'm', why: 'priority 1' },
  { provider: 'gamma', upstreamModel: 'm', why: 'priority 3, messages endpoint: tools with reasoning' },
  { provider: 'beta', upstreamModel: 'm', why: 'left out: ejected (failing), 15 s left' },
]

test('records the candidates in order, then the excluded ones, with reasons', () => {
  const { health, candidates } = start()
  expect(candidateRecords(health.plan(candidates))).toEqual(expected)
})

test('explains where a request would go, in which dialect, without calling anything', () => {
  const { health, candidates } = start()
  const model = { id: 'acme/large', routing: 'priority' } as OfferedModel
  const offer = { candidates: () => candidates, fallbacksOf: () => [] } as unknown as WorkspaceOffer
  const explain = () => explainPlan({ offer, health, caller: {} as Caller, model, surface: surfaces.chat.dialect })
  const [acme, gamma, beta] = expected
  const unused = { model: 'acme/large', standing: { state: 'unused' }, waitMs: undefined } as const
  const down = { model: 'acme/large', standing: { state: 'cooldown', why: 'failing' }, waitMs: 15_000 } as const
  expect(explain()).toEqual({
    model: 'acme/large',
    mode: 'ordinary',
    candidates: [
      { ...acme, ...unused, why: 'priority 1', place: 1, dialect: 'openai-chat', lane: 'bytes' },
      { ...gamma, ...unused, why: String(gamma?.why), place: 2, dialect: 'openai-chat', lane: 'bytes' },
      {
        ...beta,
        ...down,
        why: String(beta?.why),
        place: undefined,
        dialect: 'anthropic-messages',
        lane: 'translation',
      },
    ] as ReturnType<typeof explain>['candidates'],
  })
  expect(explain()).toEqual(explain())
})
