// What the pages read of the management API's answers; docs/reference/management-api.md describes them. Money is a
// decimal text, times are ISO 8601, null is absent.

export interface RequestItem {
  readonly id: string
  readonly started_at: string
  readonly workspace_id: string
  readonly project_id: string
  readonly key_id: string
  readonly path: string
  readonly stream: boolean
  readonly model: string | null
  readonly status: number
  readonly code: string | null
  readonly reason: string | null
  readonly provider: string | null
  readonly upstream_model: string | null
  readonly lane: string | null
  readonly candidates: readonly {
    readonly provider: string
    readonly upstream_model: string
    readonly why: string | null
  }[]
  readonly attempts: readonly AttemptItem[]
  readonly warnings: readonly string[]
  readonly notes: readonly string[]
  readonly usage: UsageItem | null
  readonly price_version: string | null
  readonly cost: string | null
  readonly held: string | null
  readonly first_event_ms: number | null
  readonly total_ms: number
  readonly client: string | null
}

export interface AttemptItem {
  readonly provider: string
  readonly upstream_model: string
  /** `ok`, or what went wrong. */
  readonly outcome: string
  readonly ms: number
}

export interface UsageItem {
  readonly input_tokens: number
  readonly cache_read_tokens: number
  readonly cache_write_tokens: number
  readonly cache_write_1h_tokens: number
  readonly output_tokens: number
  /** null = not reported. */
  readonly reasoning_tokens: number | null
  /** Parts of the counts above. */
  readonly audio_input_tokens: number
  readonly audio_cache_read_tokens: number
  readonly audio_output_tokens: number
  readonly web_searches: number
  readonly us_only: boolean
  readonly source: 'reported' | 'estimated'
}

export interface ChargeLine {
  readonly kind:
    | ('input' | 'cache_read' | 'cache_write' | 'cache_write_1h' | 'output')
    | ('audio_input' | 'audio_cache_read' | 'audio_output')
    | 'web_search'
  readonly tokens: number
  readonly price_per_million: string
  readonly amount: string
}

export interface TransferItem {
  readonly id: string
  readonly kind: string
  readonly direction: 'in' | 'out'
  readonly amount: string
  readonly request_id: string | null
  readonly reference: string | null
  readonly estimated: boolean
  readonly created_at: string
}

export interface ExplainedItem extends RequestItem {
  readonly charge: {
    readonly price_version: string
    readonly price_source: string
    readonly price_effective_from: string
    readonly lines: readonly ChargeLine[]
    /** What it costs; the wallet paid all of it but what was written off. */
    readonly total: string
    readonly written_off: string
    readonly charged: string
    readonly released: string | null
  } | null
  readonly transfers: readonly TransferItem[]
}

/** Of a time, a group or all. */
export interface StatFigures {
  readonly requests: number
  readonly errors: number
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cost: string
  /** null = nothing was measured. */
  readonly first_event_ms: { readonly count: number; readonly p50: number; readonly p95: number } | null
}

export interface StatsAnswer {
  readonly from: string
  readonly to: string
  /** Requests that began later may be missing. */
  readonly counted_until: string
  readonly total: StatFigures
  readonly hours: readonly (StatFigures & { readonly start: string })[]
  readonly groups: readonly (StatFigures & { readonly id: string; readonly name: string | null })[]
  readonly groups_left_off: number
}

export interface WalletAnswer {
  readonly balance: string
  readonly held: string
  readonly available: string
}

export interface KeyItem {
  readonly id: string
  readonly name: string
  readonly last4: string
}

export interface CatalogItem {
  readonly id: string
  readonly name: string
  readonly callable: boolean
  readonly max_output_tokens: number | null
  readonly price: 'free' | null | { readonly input: string; readonly output: string }
  readonly routes: readonly { readonly provider: string; readonly rehearsal?: boolean }[]
  /** A key of the workspace's own at a provider is used for it. */
  readonly own_key?: boolean
}
