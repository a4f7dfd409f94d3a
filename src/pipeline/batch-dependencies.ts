// What lines that a provider runs in a batch see in place of what live requests see: one route, whose health does not matter, and
// no limits of requests and tokens, because the provider decides when they run. Spend limits count as ever.

import type { Policy } from '../kernel/policy.ts'
import { type Limiter, unlimited, unlimitedArrival } from '../limits/limiter.ts'
import { batchOffer } from '../routing/batch-routes.ts'
import type { HealthPlan } from '../routing/plan.ts'
import type { RunDependencies } from './run.ts'

type Live = Pick<RunDependencies, 'catalog' | 'health'>

const limiter: Limiter = { arrive: () => unlimitedArrival, admit: () => unlimited }

export function batchDependencies(
  { catalog, health }: Live,
  providerId: string,
): Live & Pick<RunDependencies, 'limiter'> {
  return {
    limiter,
    catalog: {
      get current() {
        return { ...catalog.current, offer: batchOffer(catalog.current.offer, [providerId]) }
      },
    },
    health: {
      ...health,
      plan: <Item>(candidates: readonly Item[]): HealthPlan<Item> => ({
        ordered: candidates,
        reasons: candidates.map(() => 'in a batch of the provider'),
        excluded: [],
        mode: 'ordinary',
      }),
      recordInterrupted() {},
      recordSpeed() {},
    },
  }
}

const judgedAnswers = new WeakMap<readonly Policy[], readonly Policy[]>()

/** The settings without policies that judge requests: these were asked before the request was sent. */
export function answersOnly<Settings extends { readonly policies: readonly Policy[] }>(source: {
  readonly current: Settings
}): { readonly current: Settings } {
  return {
    get current() {
      const { current } = source
      if (current.policies.length === 0) return current
      const known = judgedAnswers.get(current.policies)
      const policies = known ?? current.policies.flatMap(ofAnswers)
      if (!known) judgedAnswers.set(current.policies, policies)
      return { ...current, policies }
    },
  }
}

function ofAnswers(policy: Policy): readonly Policy[] {
  return policy.when === 'request' ? [] : [{ ...policy, when: 'answer' }]
}
