// The catalog as everybody may read it: models, prices, tags, and how their routes are doing. No address and nothing of a
// credential is in it.

import { basename } from 'node:path'
import type { CatalogItem } from '../api/catalog.ts'
import type { Model } from '../catalog/model.ts'
import { showPrice } from '../catalog/price.ts'
import { isoTime } from '../kernel/clock.ts'
import type { Health, RouteReading } from '../routing/health/health.ts'
import type { Goods } from './goods.ts'

/** Models that can be called, and those that only lack a price: an unknown price is shown, not hidden. */
export function catalogItems(
  { catalog, providers, priceVersions, findPrice }: Goods,
  health: Pick<Health, 'snapshot'>,
): readonly CatalogItem[] {
  const readings = readingsByRoute(health.snapshot())
  return catalog.models
    .filter(({ routes }) => routes.some(({ providerId }) => providers.has(providerId)))
    .map((model) => ({
      id: model.id,
      name: model.name,
      owned_by: model.ownedBy,
      context_tokens: model.contextTokens ?? null,
      max_output_tokens: model.maxOutputTokens ?? null,
      tags: model.tags,
      released: model.releasedAt === undefined ? null : isoTime(model.releasedAt).slice(0, 10),
      source: publicSource(model.source),
      price: model.price ? showPrice(model.price) : null,
      price_source: model.price ? publicSource(findPrice(model.id)?.source ?? model.source) : null,
      price_version: priceVersions.get(model.id) ?? null,
      callable: model.price !== undefined,
      routes: shownRoutes(model, providers, readings),
    }))
}

/** The file by its name: where it lies on the machine is not everybody's business. */
export function publicSource(source: string): string {
  return basename(source)
}

function shownRoutes(model: Model, providers: Goods['providers'], readings: ReadonlyMap<string, RouteReading>) {
  return model.routes
    .filter(({ providerId }) => providers.has(providerId))
    .map(({ providerId, upstreamModel, priority, weight }) => {
      const reading = readings.get(`${providerId} ${upstreamModel}`)
      return {
        provider: providerId,
        upstream_model: upstreamModel,
        priority,
        weight,
        health: reading?.standing.state ?? 'healthy',
        factor: reading?.standing.factor ?? 1,
        wait_ms: reading?.standing.waitMs ?? null,
        why: reading?.standing.why ?? null,
        rehearsal: providers.get(providerId)?.isRehearsal ?? false,
        first_event_ms: figures(reading?.firstEventMs),
        tokens_per_second: figures(reading?.tokensPerSecond),
      }
    })
}

/** null: no traffic yet. */
function figures(quantiles: RouteReading['firstEventMs']) {
  if (!quantiles) return null
  const { p50, p95, samples, windowMs } = quantiles
  return { p50: Math.round(p50), p95: Math.round(p95), samples, window_ms: windowMs }
}

/** Of the operator's credential: how a workspace's own one is doing is nobody else's business. */
function readingsByRoute(readings: readonly RouteReading[]): ReadonlyMap<string, RouteReading> {
  const platform = readings.filter(({ key }) => key.credentialId === 'platform')
  return new Map(platform.map((reading) => [`${reading.key.providerId} ${reading.key.upstreamModel}`, reading]))
}
