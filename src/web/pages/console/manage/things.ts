// What the management API says of the things that the console manages, as these pages read it. The API's own document
// is the authority; members that no page uses are left out.

export interface Limits {
  readonly requests_per_minute?: number | null
  readonly tokens_per_minute?: number | null
  readonly concurrent_requests?: number | null
  /** USD as decimal strings, in a UTC day and month. */
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
  /** null = every model. */
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
  readonly models: readonly string[] | null
  /** null = from anywhere. */
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

/** Of a request in the log, what says who called and when. */
export interface Call {
  readonly id: string
  readonly key_id: string
  readonly started_at: string
  readonly model: string | null
  readonly status: number
  readonly code: string | null
  readonly client: string | null
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

export interface Credential {
  readonly id: string
  readonly provider: string
  readonly last4: string
  /** null = the provider's own. */
  readonly base_url: string | null
  readonly updated_at: string
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
