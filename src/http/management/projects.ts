// Handlers of projects, API keys and limits. A secret is in the answer of the request that created it and nowhere else.

import { listAnswer } from '../../api/fields.ts'
import { operations } from '../../api/operations.ts'
import type { OfferedModel } from '../../api/projects.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Database } from '../../store/database.ts'
import type { ComputeVerifier } from '../../tenancy/api-key.ts'
import type { Authenticator } from '../../tenancy/authenticate.ts'
import { createKey, getKey, listKeys, revokeKey, rotateKey } from '../../tenancy/keys.ts'
import { putLimits } from '../../tenancy/limits.ts'
import {
  createProject,
  getProject,
  getWorkspace,
  listProjects,
  type Project,
  updateProject,
} from '../../tenancy/workspaces.ts'
import { keyAnswer, limitsAnswer, limitsFromBody, pageAnswer, pageOf, projectAnswer } from './answers.ts'
import { type Call, implement, type Route } from './route.ts'

export interface ProjectDependencies {
  readonly database: Database
  readonly computeVerifier: ComputeVerifier
  readonly invalidate: Authenticator['invalidate']
  readonly ledger: Pick<Ledger, 'recount'>
  /** Sorted by id, for a key without an allowlist of its own. */
  modelsOf(project: Project): Promise<readonly OfferedModel[]>
}

export function projectRoutes({ database, invalidate, modelsOf }: ProjectDependencies): readonly Route[] {
  return [
    implement(operations.createProject, {
      async write(sql, { id, body: { name, models }, act }) {
        return projectAnswer(await createProject(sql, { workspaceId: id, name, models: models ?? undefined }, act))
      },
    }),
    implement(operations.listProjects, {
      async run({ id, query }) {
        await getWorkspace(database.sql, id)
        return pageAnswer(await listProjects(database.sql, id, pageOf(query)), projectAnswer)
      },
    }),
    implement(operations.getProject, {
      run: async ({ id }) => projectAnswer(await getProject(database.sql, id)),
    }),
    implement(operations.updateProject, {
      async write(sql, { id, body, act }) {
        return projectAnswer(await updateProject(sql, id, body, act))
      },
      committed: ({ id }) => invalidate(id),
    }),
    implement(operations.listProjectModels, {
      run: async ({ id }) => listAnswer(await modelsOf(await getProject(database.sql, id))),
    }),
  ]
}

export function keyRoutes({ database, computeVerifier, invalidate }: ProjectDependencies): readonly Route[] {
  return [
    implement(operations.createKey, {
      async write(sql, { id, body, act }) {
        const wanted = {
          projectId: id,
          name: body.name,
          models: body.models ?? undefined,
          limits: body.limits == null ? undefined : limitsFromBody(body.limits),
          expiresAt: body.expires_at ?? undefined,
          sources: body.sources ?? undefined,
        }
        const { key, secret } = await createKey(sql, wanted, act, computeVerifier)
        return { ...keyAnswer(key, act.at), secret }
      },
    }),
    implement(operations.listKeys, {
      async run({ query, act }) {
        const { workspace_id: workspaceId, project_id: projectId } = query
        const page = await listKeys(database.sql, { workspaceId, projectId, page: pageOf(query) })
        return pageAnswer(page, (key) => keyAnswer(key, act.at))
      },
    }),
    implement(operations.getKey, {
      run: async ({ id, act }) => keyAnswer(await getKey(database.sql, id), act.at),
    }),
    implement(operations.revokeKey, {
      write: async (sql, { id, act }) => keyAnswer(await revokeKey(sql, id, act), act.at),
      committed: ({ id }) => invalidate(id),
    }),
    implement(operations.rotateKey, {
      async write(sql, { id, body, act }) {
        const wanted = { overlapSeconds: body.overlap_seconds ?? undefined }
        const { key, secret } = await rotateKey(sql, id, wanted, act, computeVerifier)
        return { ...keyAnswer(key, act.at), secret }
      },
      committed: ({ id }) => invalidate(id),
    }),
  ]
}

const limitOperations = [operations.putWorkspaceLimits, operations.putProjectLimits, operations.putKeyLimits] as const

type LimitCall = Call<(typeof limitOperations)[number]>

export function limitRoutes({ invalidate, ledger }: ProjectDependencies): readonly Route[] {
  return limitOperations.map((operation) =>
    implement<(typeof limitOperations)[number]>(operation, {
      async write(sql, { id, body, act }: LimitCall) {
        return limitsAnswer(await putLimits(sql, operation.kind, id, limitsFromBody(body), act))
      },
      committed({ id, body: { spend_per_day: day, spend_per_month: month } }: LimitCall) {
        invalidate(id)
        if ((day ?? month) != null) ledger.recount(id)
      },
    }),
  )
}
