// A model as the management API's catalog serves it. It is public: it contains no address and nothing of a credential.

import type { ShownPrice } from '../../catalog/price.ts'

export interface CatalogEntry {
  readonly id: string
  readonly name: string
  readonly owned_by: string
  readonly context_tokens: number | null
  readonly max_output_tokens: number | null
  readonly tags: readonly string[]
  /** YYYY-MM-DD; null = unknown. */
  readonly released: string | null
  /** The date from which the model is no longer served. */
  readonly retires?: string | null
  /** `built in`, or the file and line of the entry. */
  readonly source: string
  /** USD per million tokens; null = no price, therefore not callable. */
  readonly price: ShownPrice | null
  /** `management API`, or as `source`; null without a price. */
  readonly price_source?: string | null
  /** As charges record it: `creator/model#3`. */
  readonly price_version?: string | null
  /** ISO time. */
  readonly price_since?: string | null
  /** Where a built-in price was published, and when it was checked. */
  readonly price_origin?: { readonly source: string; readonly checked: string } | null
  readonly callable: boolean
  /** Served with the workspace's own provider key; only known where the list is limited to a key or project. */
  readonly own_key?: boolean
  readonly routes: readonly CatalogRoute[]
}

/** A price that applies from `since` until the next one. */
export interface DatedPrice {
  /** As charges record it: `creator/model#3`. */
  readonly version: string
  readonly price: ShownPrice
  /** `management API`, `built in`, or the file and line of the entry. */
  readonly source: string
  /** ISO time. */
  readonly since: string
}

export interface CatalogRoute {
  readonly provider: string
  /** The provider's name for the model. */
  readonly upstream_model: string
  readonly priority: number
  readonly weight: number
  /** From routing/health: healthy, ejected, probing, slow start, parked. */
  readonly health: string
  /** The share of its weight that the route gets now; absent = the default for its health. */
  readonly factor?: number
  /** The minimum time until the health changes. */
  readonly wait_ms?: number | null
  /** The last fault: throttled, timed out … */
  readonly why?: string | null
  /** A sandbox route: served by the gateway itself. */
  readonly rehearsal?: boolean
  /** null = no traffic yet. */
  readonly first_event_ms: Figures | null
  readonly tokens_per_second: Figures | null
}

export interface Figures {
  readonly p50: number
  readonly p95: number
  readonly samples: number
  readonly window_ms: number
}

/** The address of a model's page; the id's slash is kept. */
export function modelPath(id: string): string {
  return `/catalog/${id.split('/').map(encodeURIComponent).join('/')}`
}

/** A source without its line: `built in`, `tollgate.yaml`. */
export function sourceFile(source: string): string {
  return source.replace(/:\d+$/, '')
}

/** Whether all its routes are the sandbox's. */
export function isSandbox({ routes }: CatalogEntry): boolean {
  return routes.length > 0 && routes.every(({ rehearsal }) => rehearsal === true)
}
