// The management API's responses as the console reads them; docs/reference/management-api.md describes them. Fields that no
// page uses are left out. Amounts are decimal strings in US dollars, times are ISO 8601, null means absent.

import type { Bucket } from '../../../kernel/usage.ts'

export interface ListAnswer<Item> {
  readonly data: readonly Item[]
  readonly next_cursor: string | null
}

export interface Limits {
  readonly requests_per_minute?: number | null
  readonly tokens_per_minute?: number | null
  readonly concurrent_requests?: number | null
  /** Per UTC day and month. */
  readonly spend_per_day?: string | null
  readonly spend_per_month?: string | null
}

type ManagedBy = 'api' | 'file'

export interface Workspace {
  readonly id: string
  readonly name: string
  readonly limits: Limits
  readonly shares_routes: boolean
  readonly managed_by: ManagedBy
}

export interface Project {
  readonly id: string
  readonly workspace_id: string
  readonly name: string
  /** null = all models. */
  readonly models: readonly string[] | null
  readonly limits: Limits
  readonly managed_by: ManagedBy
  readonly created_at: string
}

export interface Key {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly last4: string
  readonly status: 'active' | 'expired' | 'revoked'
  /** null = all models of the project. */
  readonly models: readonly string[] | null
  /** null = any address. */
  readonly sources: readonly string[] | null
  readonly limits: Limits
  readonly managed_by: ManagedBy
  readonly created_at: string
  readonly expires_at: string | null
  readonly revoked_at: string | null
  readonly last_used_at: string | null
}

export interface KeyWithSecret extends Key {
  readonly secret: string
}

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
  /** `ok`, `interrupted: …` for an answer that broke off, or what failed. */
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
  /** Included in the counts above. */
  readonly audio_input_tokens: number
  readonly audio_cache_read_tokens: number
  readonly audio_output_tokens: number
  readonly web_searches: number
  readonly us_only: boolean
  readonly source: 'reported' | 'estimated'
}

export interface ChargeLine {
  readonly kind: Bucket
  readonly tokens: number
  readonly price_per_million: string
  readonly amount: string
}

export interface RequestDetails extends RequestItem {
  readonly charge: {
    readonly price_version: string
    readonly price_source: string
    readonly price_effective_from: string
    readonly lines: readonly ChargeLine[]
    /** The full cost. The wallet paid all of it except the written-off part. */
    readonly total: string
    readonly written_off: string
    readonly charged: string
    readonly released: string | null
  } | null
  readonly transfers: readonly Transfer[]
}

export interface Wallet {
  readonly balance: string
  readonly held: string
  readonly available: string
}

export interface TopUp {
  readonly id: string
  readonly amount: string
  readonly balance: string
}

export interface Correction extends TopUp {
  readonly direction: 'add' | 'take'
}

export interface Transfer {
  readonly id: string
  readonly kind: string
  readonly direction: 'in' | 'out'
  readonly amount: string
  readonly request_id: string | null
  readonly reference: string | null
  readonly price_version: string | null
  readonly estimated: boolean
  readonly created_at: string
}

/** Of an hour, a group or the whole period. */
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
  /** Requests that started later may be missing. */
  readonly counted_until: string
  readonly total: StatFigures
  readonly hours: readonly (StatFigures & { readonly start: string })[]
  readonly groups: readonly (StatFigures & { readonly id: string; readonly name: string | null })[]
  readonly groups_left_off: number
}

export interface Provider {
  readonly id: string
  readonly origin: 'environment' | 'file' | 'built_in' | 'found'
  readonly source: string
  readonly last4: string | null
  /** null = served from inside the gateway. */
  readonly address: string | null
  readonly models: number
}

export interface Credential {
  readonly id: string
  readonly provider: string
  readonly last4: string
  /** null = the provider's default address. */
  readonly base_url: string | null
  readonly updated_at: string
}

export interface KeyTestResult {
  readonly verdict: string
  readonly message: string
  readonly status: number | null
  readonly tested_at: string
}

export interface Setting {
  readonly name: string
  readonly value: string
  readonly source: string
}

export interface AuditEntry {
  readonly sequence: number
  readonly at: string
  readonly actor: string
  readonly action: string
  readonly object: string
  readonly details: Readonly<Record<string, unknown>>
  readonly request_id: string | null
}
