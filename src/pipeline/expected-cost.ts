// What requests will cost that are sent later: the lines of a batch. Each is checked as far as it can be without a provider: its
// envelope and its model. What they will probably cost is not reserved, unless they run in a batch of their provider.

import { freePrice, priceBound } from '../catalog/price.ts'
import type { SentRequest } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import type { Nano } from '../kernel/money.ts'
import { batchRoute } from '../routing/batch-routes.ts'
import type { Offer, ResolvedModel } from '../routing/offer.ts'
import type { Candidate } from '../routing/plan.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { CredentialCache } from '../tenancy/credentials.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import { wrongKind } from './admit.ts'
import { Content } from './content.ts'
import type { InputRatios } from './estimate.ts'
import type { UsualOutputs } from './learned.ts'
import { type Asked, expectedTokens, usualHold } from './place-hold.ts'
import type { TagContent } from './session.ts'
import { outputCapOf } from './usage.ts'

export interface ExpectedCostDependencies {
  readonly credentials: Pick<CredentialCache, 'find'>
  readonly catalog: { readonly current: { readonly offer: Offer } }
  readonly ratios: InputRatios
  readonly outputs: UsualOutputs
  readonly tagContent: TagContent
  /** The providers whose batches lines run in. */
  batchProviders(): readonly string[]
}

export interface ExpectedRequest {
  readonly model: string
  readonly cost: Nano
  readonly isStreamed: boolean
  /** Where it can run in a batch of its provider, and what has to be held for that. */
  readonly inBatch: { readonly providerId: string; readonly amount: Nano } | undefined
}

/** How requests to one path are read. */
export interface RequestKind {
  readonly surface: Dialect
  readonly headers: RequestHeaders
  readonly url: string
  readEnvelope(body: Uint8Array<ArrayBuffer>, headers: RequestHeaders, url: string): SentRequest | Failure
}

export type JudgeRequest = (body: Uint8Array<ArrayBuffer>) => ExpectedRequest | Failure
export type ExpectedCost = (caller: Caller, kind: RequestKind) => Promise<JudgeRequest>

export function createExpectedCost(deps: ExpectedCostDependencies): ExpectedCost {
  /** Who asks for a tier wants its price; who names providers or other models may get another route. */
  function inBatch(
    asked: Asked,
    { model, policy }: ResolvedModel,
    candidates: readonly Candidate[],
  ): ExpectedRequest['inBatch'] {
    const { tier, providers, fallbacks, embeddings } = asked.envelope
    const isPlain = tier === undefined || tier === 'standard' || tier === 'auto'
    if (!isPlain || providers || fallbacks || policy) return undefined
    const route = batchRoute(candidates, deps.batchProviders())
    if (!route || (embeddings && !route.dialect.embeddings)) return undefined
    return { providerId: route.provider.id, amount: usualHold(asked, model, [route], deps.ratios).usual.amount }
  }

  return async (caller, { surface, headers, url, readEnvelope }) => {
    const ownKeys = await deps.credentials.find(caller.workspaceId)
    const offer = deps.catalog.current.offer.with(ownKeys, caller.priceList)
    const tags = deps.tagContent(caller.workspaceId)
    return (body) => {
      const sent = readEnvelope(body, headers, url)
      if (sent instanceof Failure) return sent
      const { envelope } = sent
      const resolved = offer.resolve(caller, envelope.model)
      if (resolved instanceof Failure) return resolved
      const mismatch = wrongKind([resolved], envelope)
      if (mismatch) return mismatch
      const { model } = resolved
      const candidates = offer.candidates(model, surface, caller, envelope)
      const isOwnOnly = candidates.every(({ isOwn }) => isOwn)
      const price = isOwnOnly ? (model.fee?.price ?? freePrice) : model.price
      const content = new Content(sent, surface, candidates, tags)
      const inputTokens = expectedTokens({ envelope, content }, model, deps.ratios)
      const cap = outputCapOf(envelope, model)
      const usual = deps.outputs.of(caller.keyId, model.id) ?? cap
      const cost = priceBound(price, inputTokens, Math.min(cap, usual) * envelope.choices, noConditions)
      return {
        model: model.id,
        cost,
        isStreamed: envelope.stream,
        inBatch: inBatch({ envelope, content }, resolved, candidates),
      }
    }
  }
}

/** A cache mark, audio or a region may make it dearer; the hold of the request itself counts them. */
const noConditions = { without: ['cache_write_1h', 'audio_input', 'audio_cache_read', 'audio_output'] } as const
