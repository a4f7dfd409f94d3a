// The routes whose requests run in batches of their provider. What is offered then is that one route of a model, and nothing else.

import { hasTier } from '../catalog/price.ts'
import { batchApiOf } from '../providers/batch-api/registry.ts'
import type { Offer, WorkspaceOffer } from './offer.ts'
import type { Candidate } from './plan.ts'

/** The same object for the same candidate, by which others remember what follows from it. */
const inBatches = new WeakMap<Candidate, Candidate>()

/**
 * The first route of a model, if its provider runs batches, on the operator's own credential and at a price for them. undefined
 * also where a workspace pays its provider itself. `providers`: those at which the operator wants batches to run.
 */
export function batchRoute(candidates: readonly Candidate[], providers: readonly string[]): Candidate | undefined {
  if (candidates.some(({ isOwn }) => isOwn)) return undefined
  const able = candidates.filter(
    ({ provider, endpoint, model: { price } }) =>
      providers.includes(provider.id) &&
      provider.transport === undefined &&
      batchApiOf(endpoint) !== undefined &&
      (price.free || hasTier(price, 'batch')),
  )
  const [first] = able.sort((a, b) => a.route.priority - b.route.priority)
  return first && asInBatch(first)
}

function asInBatch(candidate: Candidate): Candidate {
  const known = inBatches.get(candidate)
  if (known) return known
  const inBatch: Candidate = { ...candidate, inBatch: true }
  inBatches.set(candidate, inBatch)
  return inBatch
}

/** What callers may use of it in batches of providers. */
export function batchOffer(offer: Offer, providers: readonly string[]): Offer {
  return {
    ...offer,
    with: (...caller: Parameters<Offer['with']>) => onlyBatchRoutes(offer.with(...caller), providers),
  }
}

function onlyBatchRoutes(offer: WorkspaceOffer, providers: readonly string[]): WorkspaceOffer {
  return {
    ...offer,
    candidates(...asked: Parameters<WorkspaceOffer['candidates']>) {
      const route = batchRoute(offer.candidates(...asked), providers)
      return route ? [route] : []
    },
    fallbacksOf: () => [],
  }
}
