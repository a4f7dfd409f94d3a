// A model as the pages read it: the same JSON that the management API's catalog serves, so that page, API and bill speak
// of one thing. It holds no address and nothing of a credential; everybody may read it.

export interface CatalogEntry {
  readonly id: string
  readonly name: string
  readonly owned_by: string
  readonly context_tokens: number | null
  readonly max_output_tokens: number | null
  readonly tags: readonly string[]
  /** YYYY-MM-DD; null = not known. */
  readonly released: string | null
  /** The day from which the model is no longer served; absent or null = none is known. */
  readonly retires?: string | null
  /** `built in`, or the file and line of the entry. */
  readonly source: string
  /** USD per million tokens; null = no price, therefore not callable. */
  readonly price: ShownPrice | 'free' | null
  /** `management API`, or as `source`; null without a price. */
  readonly price_source?: string | null
  /** Names the price for ever, as charges carry it. */
  readonly price_version?: string | null
  /** Since when the price has been in force, ISO time. */
  readonly price_since?: string | null
  /** Where a built-in price was read, and when. */
  readonly price_origin?: { readonly source: string; readonly checked: string } | null
  readonly callable: boolean
  /** A credential of the viewer's workspace is used for it; only known where the list is narrowed to a key or project. */
  readonly own_key?: boolean
  readonly routes: readonly CatalogRoute[]
}

/** A price that was in force from then on, until the next one. */
export interface DatedPrice {
  /** As charges carry it: `creator/model#3`. */
  readonly version: string
  readonly price: ShownPrice | 'free'
  /** `management API`, `built in`, or the file and line of the entry. */
  readonly source: string
  /** ISO time. */
  readonly since: string
}

/** Decimal strings of USD per million tokens. */
export interface ShownPriceRow {
  readonly input: string
  readonly output: string
  readonly cache_read: string
  readonly cache_write: string
  readonly cache_write_1h: string
  /** Of sound; absent = as text. */
  readonly audio_input?: string | undefined
  readonly audio_cache_read?: string | undefined
  readonly audio_output?: string | undefined
}

/** Kinds that every priced model has. */
export type TextKind = Exclude<keyof ShownPriceRow, `audio_${string}`>

export interface ShownPrice extends ShownPriceRow {
  /** USD per thousand searches of the web that the provider runs; absent = they are not charged. */
  readonly web_search?: string | undefined
  /** What tokens cost times this where the work is kept in the United States; absent = no more. */
  readonly us_only?: string | undefined
  /** Other prices for requests with more input tokens than the key says. */
  readonly over?: Readonly<Record<string, ShownPriceRow>> | undefined
}

export interface CatalogRoute {
  readonly provider: string
  /** What the provider calls the model. */
  readonly upstream_model: string
  readonly priority: number
  readonly weight: number
  /** A state of routing/health: healthy, ejected, probing, slow start, parked. */
  readonly health: string
  /** The share of its weight that the route gets now; absent = what its state usually means. */
  readonly factor?: number
  /** How long the state lasts at least. */
  readonly wait_ms?: number | null
  /** What the last fault was about: throttled, timed out … */
  readonly why?: string | null
  /** Served from inside the gateway, with failures on purpose. */
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

/** The page of a model; the id's slash stays one. */
export function modelPath(id: string): string {
  return `/catalog/${id.split('/').map(encodeURIComponent).join('/')}`
}

/** Where the entry stands, without the line: `built in`, `tollgate.yaml`. */
export function sourceFile(source: string): string {
  return source.replace(/:\d+$/, '')
}

export function isRehearsal({ routes }: CatalogEntry): boolean {
  return routes.length > 0 && routes.every(({ rehearsal }) => rehearsal === true)
}
