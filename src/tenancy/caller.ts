// Who is calling, as everything after authentication sees it. Holds no secret and no part of one.

import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'

export interface Caller {
  readonly keyId: KeyId
  readonly keyName: string
  readonly projectId: ProjectId
  readonly workspaceId: WorkspaceId
  readonly workspaceName: string
  /** Ids and `prefix/*` patterns; undefined = every model. */
  readonly models: readonly string[] | undefined
}
