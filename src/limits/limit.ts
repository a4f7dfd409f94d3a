// The words of this folder: what can be limited, and whom a limit binds. Only words; what was taken of a limit is kept
// by a limiter.

import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'

/** Whole numbers, below 10^11 so that sums stay exact. Absent = unlimited, 0 = nothing is let through. */
export interface Limits {
  /** N admits a burst of N and refills evenly. */
  readonly requestsPerMinute?: number | undefined
  /** Input and output together; refills like requests. */
  readonly tokensPerMinute?: number | undefined
  /** At the same time. */
  readonly concurrentRequests?: number | undefined
}

export type LimitKind = 'requests' | 'tokens' | 'concurrent'

/** Someone whose requests are counted together. A request is counted in each of its scopes; the tightest holds. */
export type LimitScope =
  | (ScopeFacts & { readonly kind: 'key'; readonly id: KeyId })
  | (ScopeFacts & { readonly kind: 'project'; readonly id: ProjectId })
  | (ScopeFacts & { readonly kind: 'workspace'; readonly id: WorkspaceId })

interface ScopeFacts {
  /** For people, in messages. */
  readonly name: string
  /** As they are now: they may differ from call to call, and act at once. */
  readonly limits: Limits
}

export function isLimited({ limits }: LimitScope): boolean {
  return (
    limits.requestsPerMinute !== undefined ||
    limits.tokensPerMinute !== undefined ||
    limits.concurrentRequests !== undefined
  )
}
