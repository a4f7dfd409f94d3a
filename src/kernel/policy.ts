// A policy of the operator: an endpoint that may refuse requests and answers, and which of them it is asked about.

import type { ProjectId, WorkspaceId } from './ids.ts'
import type { policyFailureModes, policyMedia, policyModes, policyMoments } from './policy-words.ts'
import type { Secret } from './secret.ts'

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
