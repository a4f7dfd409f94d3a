// What requests will probably cost that are sent later, without reserving it: the lines of a batch. Each is checked as far as
// it can be without a provider: its envelope and its model.

import { freePrice, priceBound } from '../catalog/price.ts'
import type { SentRequest } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import type { Nano } from '../kernel/money.ts'
import type { Offer } from '../routing/offer.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { CredentialCache } from '../tenancy/credentials.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import { wrongKind } from './admit.ts'
import { Content } from './content.ts'
import type { InputRatios } from './estimate.ts'
import type { UsualOutputs } from './learned.ts'
import { expectedTokens } from './place-hold.ts'
import type { TagContent } from './session.ts'
import { outputCapOf } from './usage.ts'

export interface ExpectedCostDependencies {
  readonly credentials: Pick<CredentialCache, 'find'>
  readonly catalog: { readonly current: { readonly offer: Offer } }
  readonly ratios: InputRatios
  readonly outputs: UsualOutputs
  readonly tagContent: TagContent
}

export interface ExpectedRequest {
  readonly model: string
  readonly cost: Nano
  readonly isStreamed: boolean
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
      const inputTokens = expectedTokens(
        { envelope, content: new Content(sent, surface, candidates, tags) },
        model,
        deps.ratios,
      )
      const cap = outputCapOf(envelope, model)
      const usual = deps.outputs.of(caller.keyId, model.id) ?? cap
      const cost = priceBound(price, inputTokens, Math.min(cap, usual) * envelope.choices, noConditions)
      return { model: model.id, cost, isStreamed: envelope.stream }
    }
  }
}

/** A cache mark, audio or a region may make it dearer; the hold of the request itself counts them. */
const noConditions = { without: ['cache_write_1h', 'audio_input', 'audio_cache_read', 'audio_output'] } as const
