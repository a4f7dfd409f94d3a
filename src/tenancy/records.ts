// Writes the rows of workspaces, projects and keys, inside a transaction of the caller's, and checks nothing. A key's
// secret passes through once and is stored as its verifier only.

import { createId, type KeyId, type ProjectId, type WorkspaceId } from '../kernel/ids.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { modelsToSql } from './allowlist.ts'
import { type ApiKey, type ComputeVerifier, lastFour } from './api-key.ts'
import { type Limits, limitsToSql } from './limits.ts'
import type { ManagedBy } from './managed.ts'
import { sourcesToSql } from './sources.ts'

export interface NewWorkspace {
  readonly name: string
  readonly createdAt: number
  readonly managedBy?: ManagedBy
}

export async function insertWorkspace(sql: Sql, workspace: NewWorkspace): Promise<WorkspaceId> {
  const id = createId('ws')
  const row = {
    id,
    name: workspace.name,
    created_at: timeToSql(workspace.createdAt),
    managed_by: workspace.managedBy ?? 'api',
  }
  await sql`INSERT INTO workspaces ${sql([row])}`
  return id
}

export interface NewProject {
  readonly workspaceId: WorkspaceId
  readonly name: string
  /** Ids and `prefix/*` patterns; undefined = every model. */
  readonly models?: readonly string[] | undefined
  readonly createdAt: number
  readonly managedBy?: ManagedBy
}

export async function insertProject(sql: Sql, project: NewProject): Promise<ProjectId> {
  const id = createId('prj')
  const row = {
    id,
    workspace_id: project.workspaceId,
    name: project.name,
    models: modelsToSql(project.models),
    created_at: timeToSql(project.createdAt),
    managed_by: project.managedBy ?? 'api',
  }
  await sql`INSERT INTO projects ${sql([row])}`
  return id
}

export interface NewKey {
  readonly projectId: ProjectId
  readonly name: string
  readonly key: ApiKey
  readonly createdAt: number
  readonly expiresAt?: number | undefined
  /** Narrows the project's allowlist. */
  readonly models?: readonly string[] | undefined
  readonly limits?: Limits | undefined
  /** Addresses and ranges it may be used from. */
  readonly sources?: readonly string[] | undefined
  readonly managedBy?: ManagedBy
}

export async function insertKey(sql: Sql, key: NewKey, computeVerifier: ComputeVerifier): Promise<KeyId> {
  const id = createId('key')
  await sql`INSERT INTO api_keys (id, project_id, workspace_id, name, verifier, pepper_version, last4, created_at,
      expires_at, models, limits, sources, managed_by)
    VALUES (${id}, ${key.projectId}, (SELECT workspace_id FROM projects WHERE id = ${key.projectId}), ${key.name},
      ${computeVerifier(key.key)}, ${computeVerifier.version}, ${lastFour(key.key)}, ${timeToSql(key.createdAt)},
      ${key.expiresAt === undefined ? null : timeToSql(key.expiresAt)}, ${modelsToSql(key.models)},
      ${limitsToSql(key.limits ?? {})}, ${sourcesToSql(key.sources)},
      ${key.managedBy ?? 'api'})`
  return id
}
