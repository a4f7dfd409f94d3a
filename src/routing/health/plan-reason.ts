// Why a candidate stands where it does in a plan, or was left out of it, in a few words for people. It decides nothing.

import type { Route, RoutingPolicy } from '../../catalog/model.ts'
import { formatPrice } from '../../kernel/money.ts'
import type { Quantiles } from './latency.ts'
import { platformCredential, type RouteKey } from './route-key.ts'
import type { Standing } from './standing.ts'

export interface Place {
  readonly candidate: { readonly route: Pick<Route, 'priority' | 'weight' | 'cost'>; readonly key: RouteKey }
  readonly standing: Standing
  readonly firstEvent: Quantiles | undefined
  readonly policy: RoutingPolicy
  readonly mode: 'ordinary' | 'panic'
  /** It served this conversation last. */
  readonly isSticky: boolean
  /** It begins so much later than the others that it gets half of its weight. */
  readonly isOutlier: boolean
  /** How many compete for this place, itself included. */
  readonly rivals: number
}

/** `own credential, priority 1, weight 3, slow start at 40 %` */
export function placeReason({ candidate, standing, isSticky, isOutlier, mode, ...choice }: Place): string {
  const { route, key } = candidate
  let text = key.credentialId === platformCredential ? '' : 'own credential, '
  text += `priority ${route.priority}`
  if (choice.rivals > 1) text += `, ${choiceReason(route, choice)}`
  if (isSticky) text += ', has the prompt cache of this conversation'
  if (isOutlier) text += ', slower than the others: half its weight'
  if (mode === 'panic') return `${text}, tried because no route is known to work`
  if (standing.state === 'probing') return `${text}, tested after an ejection`
  if (standing.factor < 1) text += `, ${standingReason(standing)} at ${Math.round(standing.factor * 100)} %`
  return text
}

function choiceReason(
  { weight, cost }: Place['candidate']['route'],
  { policy, firstEvent }: Pick<Place, 'policy' | 'firstEvent'>,
): string {
  if (policy === 'fastest') {
    return firstEvent ? `begins after ${Math.round(firstEvent.p50)} ms` : 'not measured yet'
  }
  if (policy === 'cheapest') {
    return cost ? `costs $${formatPrice(cost.input)} / $${formatPrice(cost.output)}` : 'cost not known'
  }
  return `weight ${weight}`
}

function standingReason({ state }: Standing): string {
  return state === 'slow start' ? state : 'overloaded'
}

/** `left out: ejected (failing), 41 s left` */
export function exclusionReason({ state, why, waitMs }: Standing): string {
  const cause = why === undefined ? '' : ` (${why})`
  const seconds = Math.ceil((waitMs ?? 0) / 1000)
  // A route under test is busy with somebody else's request.
  const word = state === 'probing' ? 'being tested' : state
  return `left out: ${word}${cause}${seconds > 0 ? `, ${seconds} s left` : ''}`
}
