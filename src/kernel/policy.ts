// A policy of the operator: an endpoint that may refuse requests and answers, and which of them it is asked about.

import type { ProjectId, WorkspaceId } from './ids.ts'
import type { Secret } from './secret.ts'

/** What is checked: the request before it is sent to a provider, the answer before it is sent to the client, or both. */
export const policyMoments = ['request', 'answer', 'both'] as const

/** What happens to a request or answer that the policy has not judged: it is refused, or it goes on. */
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
  readonly when: (typeof policyMoments)[number]
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
