// Where a request for a model would go right now, and why: a dry run that asks no provider and costs nothing.

import { z } from 'zod'
import { Failure } from '../../kernel/failure.ts'
import type { PlanExplanation } from '../../routing/explain-plan.ts'
import { defineRoute, type Route } from './route.ts'

export type SurfaceName = 'chat' | 'messages'

export interface PlanDependencies {
  /** As a caller without own credentials and allowlist would be served; undefined = there is no such model. */
  planOf(modelId: string, surface: SurfaceName): PlanExplanation | undefined
}

const planSchema = z.object({
  model: z.string(),
  surface: z.enum(['chat', 'messages']),
  mode: z.enum(['ordinary', 'panic']).describe('Panic: no route is known to work, so all that may be asked are tried.'),
  candidates: z.array(
    z.object({
      place: z.number().nullable().describe('1 is tried first; null = it would not be tried now.'),
      provider: z.string(),
      upstream_model: z.string(),
      dialect: z.string(),
      lane: z.enum(['bytes', 'translation']),
      why: z.string(),
    }),
  ),
})

export function planRoutes({ planOf }: PlanDependencies): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/models/{model}/plan',
      operation: 'getPlan',
      summary: 'Says where a request for the model would go now, and why; nothing is sent.',
      query: z.strictObject({
        surface: z.enum(['chat', 'messages']).default('chat').describe('The dialect of the caller.'),
      }),
      answer: planSchema,
      status: 200,
      async run({ model, query }) {
        const plan = planOf(model, query.surface)
        if (!plan) return new Failure('NOT_FOUND', `No model \`${model.slice(0, 100)}\` is on offer.`)
        const candidates = plan.candidates.map(({ place, provider, upstreamModel, dialect, lane, why = '' }) => ({
          place: place ?? null,
          provider,
          upstream_model: upstreamModel,
          dialect,
          lane,
          why,
        }))
        return { model: plan.model, surface: query.surface, mode: plan.mode, candidates }
      },
    }),
  ]
}
