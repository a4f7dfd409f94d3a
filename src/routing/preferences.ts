// A caller's preferences for routing, in the form that OpenRouter made common: further models for the case that the
// first fails (`models`), and which of the operator's routes to use in which order (`provider`, `:floor`, `:nitro`). A
// caller can only narrow or reorder what the operator offers.

import type { RoutingPolicy } from '../catalog/model.ts'
import type { ProviderPreferences } from '../dialects/canonical/translation.ts'
import { Failure } from '../kernel/failure.ts'
import type { Candidate } from './plan.ts'
import type { HealthPlan } from './rank.ts'

/** Our policies by the words of `provider.sort` and by the suffixes of model names. */
const policies: Readonly<Record<string, RoutingPolicy>> = {
  ...{ price: 'cheapest', throughput: 'fastest', latency: 'fastest' },
  ...{ floor: 'cheapest', nitro: 'fastest' },
}

const suffix = /:(floor|nitro)$/

/** The name without `:floor` or `:nitro`, and the policy that the suffix asks for. */
export function splitSuffix(name: string): { readonly name: string; readonly policy: RoutingPolicy | undefined } {
  const word = suffix.exec(name)?.[1]
  return word === undefined ? { name, policy: undefined } : { name: name.replace(suffix, ''), policy: policies[word] }
}

export function policyOf({ sort }: ProviderPreferences): RoutingPolicy | undefined {
  return sort === undefined ? undefined : policies[sort]
}

/** The candidates at providers that the caller wants; a failure if it wants none of those there are. */
export function wantedCandidates(
  candidates: readonly Candidate[],
  { order, only, ignore, isClosed }: ProviderPreferences,
  modelId: string,
): readonly Candidate[] | Failure {
  const among = only ?? (isClosed ? order : undefined)
  const wanted = candidates.filter(({ provider: { id } }) => {
    const name = id.toLowerCase()
    return among?.includes(name) !== false && !ignore?.includes(name)
  })
  if (wanted.length > 0) return wanted
  const served = [...new Set(candidates.map(({ provider }) => provider.id))].join(', ')
  const message = `\`provider\` leaves no route to \`${modelId}\`, which is served by ${served}. Name one of them, or leave \`provider\` out.`
  return new Failure('NOT_FOUND', message, { param: 'provider', cause: 'no_route' })
}

/** The candidates of the named providers first, in that order. */
export function inOrder(plan: HealthPlan<Candidate>, order: readonly string[]): HealthPlan<Candidate> {
  const placeOf = ({ provider }: Candidate): number => {
    const place = order.indexOf(provider.id.toLowerCase())
    return place === -1 ? order.length : place
  }
  const placed = plan.ordered.map((candidate, at) => {
    const reason = plan.reasons[at] ?? ''
    const place = placeOf(candidate)
    return { candidate, place, reason: place < order.length ? `${reason}, ${place + 1} in the caller's order` : reason }
  })
  placed.sort((a, b) => a.place - b.place)
  return { ...plan, ordered: placed.map(({ candidate }) => candidate), reasons: placed.map(({ reason }) => reason) }
}

/** One plan for several models: all routes of the first, then those of the next. */
export function joinPlans(plans: readonly HealthPlan<Candidate>[]): HealthPlan<Candidate> {
  return {
    ordered: plans.flatMap(({ ordered }) => ordered),
    reasons: plans.flatMap(({ ordered, reasons }, at) =>
      ordered.map((_, place) => (at === 0 ? (reasons[place] ?? '') : `${reasons[place] ?? ''}, model ${at + 1}`)),
    ),
    excluded: plans.flatMap(({ excluded }) => excluded),
    mode: plans.some(({ mode }) => mode === 'ordinary') ? 'ordinary' : 'panic',
  }
}
