// Who is calling, as everything after authentication sees it. Holds no secret and no part of one. Made once for each
// remembered key and never changed, so that a request adds nothing.

import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { IpRange } from '../kernel/ip-range.ts'
import type { Allowlist } from './allowlist.ts'
import type { LimitScope } from './limits.ts'

export interface Caller {
  readonly keyId: KeyId
  readonly keyName: string
  readonly projectId: ProjectId
  readonly projectName: string
  readonly workspaceId: WorkspaceId
  readonly workspaceName: string
  /** Of the project and of the key, where they have one; `allowsModel` asks all of them. Empty = every model. */
  readonly allow: readonly Allowlist[]
  /** Key, project and workspace, those that are limited; the tightest holds. */
  readonly limits: readonly LimitScope[]
  /** Whether routes on the operator's credentials may follow those on the workspace's own. */
  readonly sharesRoutes: boolean
  /** Where the key may be used from; undefined = anywhere. See `allowsSource`. */
  readonly sources: readonly IpRange[] | undefined
}
