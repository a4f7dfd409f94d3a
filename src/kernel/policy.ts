// A policy of the operator: an endpoint that may refuse requests, and which of them it is asked about.

import type { ProjectId, WorkspaceId } from './ids.ts'
import type { Secret } from './secret.ts'

/** What happens to a request that the policy has not judged: it is refused, or it goes on. */
export const policyFailureModes = ['closed', 'open'] as const

/** watch: verdicts are recorded, and nothing is refused. */
export const policyModes = ['enforce', 'watch'] as const

/** How the policy gets images and documents: their SHA-256, or their bytes. */
export const policyMedia = ['digest', 'bytes'] as const

export interface Policy {
  readonly id: string
  readonly url: string
  /** `whsec_…`, as https://www.standardwebhooks.com describes. */
  readonly secret: Secret
  /** undefined = all workspaces. */
  readonly workspaceId: WorkspaceId | undefined
  /** undefined = all projects. */
  readonly projects: readonly ProjectId[] | undefined
  /** Ids, or the beginnings of some and `*`; undefined = all models. */
  readonly models: readonly string[] | undefined
  readonly timeoutMs: number
  readonly onFailure: (typeof policyFailureModes)[number]
  readonly mode: (typeof policyModes)[number]
  readonly images: (typeof policyMedia)[number]
}
