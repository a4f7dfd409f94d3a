// Service tiers: which routes can serve the tier that a request asks for, and at which tier's price a reply is charged.

import { hasTier } from '../catalog/price.ts'
import { tierWordsOf } from '../dialects/canonical/tiers.ts'
import type { SentRequest } from '../dialects/canonical/translation.ts'
import { shownWord } from '../dialects/request/fields.ts'
import { type Failure, invalidRequest } from '../kernel/failure.ts'
import { type AskedTier, isTier, type Tier, tiers, type Usage } from '../kernel/usage.ts'
import type { Candidate, OfferedModel } from '../routing/plan.ts'

/**
 * The candidates that have the tier that the caller asks for, at a price; all of them for the standard tier, and if the
 * provider is to choose. On a workspace's own credential its provider bills it, and no price is needed.
 */
export function withTier(
  candidates: readonly Candidate[],
  model: OfferedModel,
  sent: SentRequest,
): readonly Candidate[] | Failure {
  const { tier } = sent.envelope
  if (tier === undefined || tier === 'auto' || tier === 'standard') return candidates
  const priced = candidates.filter(({ isOwn }) => isOwn || isPriced(model, tier))
  const able = priced.filter(({ rules, dialect }) => {
    const words = tierWordsOf(rules, dialect.hostTiers)
    // The provider of the workspace judges words that we do not know.
    return words[tier] !== undefined || tier === 'unknown'
  })
  return able.length > 0 ? able : refusal(model, tier, sent, priced.length > 0)
}

/** A free model is free in every tier that callers can ask for. */
function isPriced({ price }: OfferedModel, tier: Exclude<AskedTier, 'auto' | 'standard'>): boolean {
  return tier !== 'unknown' && tiers[tier].isAsked && (price.free || hasTier(price, tier))
}

/** Where the surfaces have it. */
const members = ['service_tier', 'serviceTier', 'speed']

function refusal(
  { id }: OfferedModel,
  tier: AskedTier,
  { members: body }: SentRequest,
  isPricedTier: boolean,
): Failure {
  const words = members.flatMap((name) => {
    const node = body.get(name)
    // A speed that is standard asks for nothing.
    if (!node || node.kind === 'null' || (name === 'speed' && node.string === 'standard')) return []
    return [{ name, word: node.string ?? node.kind }]
  })
  const { name = 'service_tier', word = tier } = words.at(-1) ?? {}
  if (isPricedTier) {
    const message = `No provider of \`${id}\` has the service tier ${shownWord(word)}. Leave out \`${name}\`, or use another model.`
    return invalidRequest(message, name)
  }
  const isKnown = isTier(tier) && tiers[tier].isAsked
  const remedies = isKnown
    ? `, use a provider key of your own, or ask the operator to set \`price.tiers.${tier}\``
    : ' or use a provider key of your own'
  const message = `\`${id}\` has no price for the service tier ${shownWord(word)}. Leave out \`${name}\`${remedies}.`
  return invalidRequest(message, name)
}

interface ChargedCandidate extends Pick<Candidate, 'isOwn' | 'inBatch'> {
  readonly model: Pick<OfferedModel, 'price'>
}

export interface ChargedTier {
  readonly tier: Usage['tier']
  /** Why that is not the tier that was asked for, or that the reply names; undefined = it is. */
  readonly note?: string
  /** The reply names a tier without a price. */
  readonly unpriced?: Tier
}

/**
 * The tier that the reply names, if it has a price. Otherwise the one that was asked for, or the standard one: a tier is
 * never free because it has no price. On a workspace's own credential every tier counts as priced. Results of a provider's
 * batch have the price of batches, whatever they name: most providers call them standard.
 */
export function chargedTier(
  { model: { price }, isOwn, inBatch }: ChargedCandidate,
  asked: AskedTier | undefined,
  named: Usage['tier'],
): ChargedTier {
  if (inBatch) return { tier: 'batch' }
  const wanted: Tier | undefined = asked !== undefined && isTier(asked) ? asked : undefined
  if (named === undefined) {
    return wanted
      ? { tier: wanted, note: `the reply names no service tier; charged as ${wanted}, as asked` }
      : { tier: named }
  }
  const hasPrice = named === 'standard' || isOwn || price.free || hasTier(price, named)
  if (!hasPrice) {
    const tier = wanted ?? 'standard'
    const note = `the provider served it in the service tier ${named}, which has no price; charged as ${tier}`
    return { tier, note, unpriced: named }
  }
  return wanted === undefined || wanted === named
    ? { tier: named }
    : { tier: named, note: `asked for the service tier ${wanted}, served and charged as ${named}` }
}
