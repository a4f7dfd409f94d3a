// The ordered candidates of a request: by priority, and inside one priority by weight. Pure: chance is handed in.

import type { Model, Route } from '../catalog/model.ts'
import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import type { Dialect, Dialects } from '../dialects/dialect.ts'
import type { Endpoint, Provider } from '../providers/provider.ts'
import { rulesFor } from '../providers/rules/rules-for.ts'
import type { Candidate } from './candidate.ts'

export interface PlanInput {
  readonly model: Model
  /** The dialect the caller speaks; an endpoint of the same one is preferred, since nothing is lost on the way to it. */
  readonly surface: Dialect
  readonly dialects: Dialects
  findProvider(id: string): Provider | undefined
  /** What a route's model at this endpoint accepts. */
  rulesOf(route: Route, endpoint: Endpoint): TargetRules
  /** A number in [0, 1). */
  random(): number
}

export function planCandidates(input: PlanInput): Candidate[] {
  const { model, surface, dialects, findProvider, rulesOf, random } = input
  const ranked: { candidate: Candidate; draw: number }[] = []
  for (const route of model.routes) {
    const provider = findProvider(route.providerId)
    const endpoint = provider?.endpoints.find((each) => each.dialect === surface.id) ?? provider?.endpoints[0]
    if (!provider || !endpoint) continue
    ranked.push({
      candidate: { route, provider, endpoint, dialect: dialects[endpoint.dialect], rules: rulesOf(route, endpoint) },
      draw: weightedDraw(route.weight, random),
    })
  }
  ranked.sort((a, b) => a.candidate.route.priority - b.candidate.route.priority || b.draw - a.draw)
  return ranked.map(({ candidate }) => candidate)
}

/**
 * Sorting by u^(1/weight) picks without replacement in proportion to the weights (Efraimidis and Spirakis, 2006), so
 * one pass orders a whole group.
 */
function weightedDraw(weight: number, random: () => number): number {
  return weight > 0 ? random() ** (1 / weight) : -1
}

/** Rules hang on names alone: each pair is asked for once, however often it is planned with. */
export function rememberRules(): PlanInput['rulesOf'] {
  const known = new Map<Route, Map<Endpoint, TargetRules>>()
  return (route, endpoint) => {
    const settled = known.get(route)?.get(endpoint)
    if (settled) return settled
    const { dialect, rules: endpointRules } = endpoint
    const rules = rulesFor({ dialect, upstreamModel: route.upstreamModel, endpointRules })
    known.set(route, (known.get(route) ?? new Map<Endpoint, TargetRules>()).set(endpoint, rules))
    return rules
  }
}
