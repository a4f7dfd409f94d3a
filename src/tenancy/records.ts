// Writes workspaces, projects and keys, inside a transaction of the caller's. A key's secret passes through once and is
// stored as its verifier only.

import { createId, type KeyId, type ProjectId, type WorkspaceId } from '../kernel/ids.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { type ApiKey, type ComputeVerifier, lastFour } from './api-key.ts'

/** Counts up when the pepper is rotated. */
const pepperVersion = 1n

export interface NewWorkspace {
  readonly name: string
  readonly createdAt: number
}

export async function insertWorkspace(sql: Sql, workspace: NewWorkspace): Promise<WorkspaceId> {
  const id = createId('ws')
  await sql`INSERT INTO workspaces ${sql([{ id, name: workspace.name, created_at: timeToSql(workspace.createdAt) }])}`
  return id
}

export interface NewProject {
  readonly workspaceId: WorkspaceId
  readonly name: string
  /** Ids and `prefix/*` patterns; undefined = every model. */
  readonly models?: readonly string[]
  readonly createdAt: number
}

export async function insertProject(sql: Sql, project: NewProject): Promise<ProjectId> {
  const id = createId('prj')
  const row = {
    id,
    workspace_id: project.workspaceId,
    name: project.name,
    models: project.models === undefined ? null : JSON.stringify(project.models),
    created_at: timeToSql(project.createdAt),
  }
  await sql`INSERT INTO projects ${sql([row])}`
  return id
}

export interface NewKey {
  readonly projectId: ProjectId
  readonly name: string
  readonly key: ApiKey
  readonly createdAt: number
  readonly expiresAt?: number
}

export async function insertKey(sql: Sql, key: NewKey, computeVerifier: ComputeVerifier): Promise<KeyId> {
  const id = createId('key')
  const row = {
    id,
    project_id: key.projectId,
    name: key.name,
    verifier: computeVerifier(key.key),
    pepper_version: pepperVersion,
    last4: lastFour(key.key),
    created_at: timeToSql(key.createdAt),
    expires_at: key.expiresAt === undefined ? null : timeToSql(key.expiresAt),
    revoked_at: null,
  }
  await sql`INSERT INTO api_keys ${sql([row])}`
  return id
}
