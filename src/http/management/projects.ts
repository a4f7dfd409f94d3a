// Handlers of projects, API keys and limits. A secret is in the answer of the request that created it and nowhere else.

import { listAnswer } from '../../api/fields.ts'
import { operations } from '../../api/operations.ts'
import type { OfferedModel } from '../../api/projects.ts'
import { Failure } from '../../kernel/failure.ts'
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
import { keyAnswer, limitsAnswer, limitsFromBody, pageOf, projectAnswer } from './answers.ts'
import { type Call, implement, notFound, type Route } from './route.ts'

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
        const project = await createProject(sql, { workspaceId: id, name, models: models ?? undefined }, act)
        if (project === 'not found') return notFound('workspace', id)
        return project instanceof Failure ? project : projectAnswer(project)
      },
    }),
    implement(operations.listProjects, {
      async run({ id, query }) {
        if ((await getWorkspace(database.sql, id)) === 'not found') return notFound('workspace', id)
        const { items, nextCursor } = await listProjects(database.sql, id, pageOf(query))
        return listAnswer(items.map(projectAnswer), nextCursor)
      },
    }),
    implement(operations.getProject, {
      async run({ id }) {
        const project = await getProject(database.sql, id)
        return project === 'not found' ? notFound('project', id) : projectAnswer(project)
      },
    }),
    implement(operations.updateProject, {
      async write(sql, { id, body, act }) {
        const project = await updateProject(sql, id, body, act)
        if (project === 'not found') return notFound('project', id)
        return project instanceof Failure ? project : projectAnswer(project)
      },
      committed: ({ id }) => invalidate(id),
    }),
    implement(operations.listProjectModels, {
      async run({ id }) {
        const project = await getProject(database.sql, id)
        return project === 'not found' ? notFound('project', id) : listAnswer(await modelsOf(project))
      },
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
        const created = await createKey(sql, wanted, act, computeVerifier)
        if (created === 'not found') return notFound('project', id)
        if (created instanceof Failure) return created
        return { ...keyAnswer(created.key, act.at), secret: created.secret }
      },
    }),
    implement(operations.listKeys, {
      async run({ query, act }) {
        const { workspace_id: workspaceId, project_id: projectId } = query
        const { items, nextCursor } = await listKeys(database.sql, { workspaceId, projectId, page: pageOf(query) })
        return listAnswer(
          items.map((key) => keyAnswer(key, act.at)),
          nextCursor,
        )
      },
    }),
    implement(operations.getKey, {
      async run({ id, act }) {
        const key = await getKey(database.sql, id)
        return key === 'not found' ? notFound('key', id) : keyAnswer(key, act.at)
      },
    }),
    implement(operations.revokeKey, {
      async write(sql, { id, act }) {
        const key = await revokeKey(sql, id, act)
        if (key === 'not found') return notFound('key', id)
        return key instanceof Failure ? key : keyAnswer(key, act.at)
      },
      committed: ({ id }) => invalidate(id),
    }),
    implement(operations.rotateKey, {
      async write(sql, { id, body, act }) {
        const wanted = { overlapSeconds: body.overlap_seconds ?? undefined }
        const rotated = await rotateKey(sql, id, wanted, act, computeVerifier)
        if (rotated === 'not found') return notFound('key', id)
        if (rotated instanceof Failure) return rotated
        return { ...keyAnswer(rotated.key, act.at), secret: rotated.secret }
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
        const limits = await putLimits(sql, operation.kind, id, limitsFromBody(body), act)
        if (limits === 'not found') return notFound(operation.kind, id)
        return limits instanceof Failure ? limits : limitsAnswer(limits)
      },
      committed({ id, body: { spend_per_day: day, spend_per_month: month } }: LimitCall) {
        invalidate(id)
        if ((day ?? month) != null) ledger.recount(id)
      },
    }),
  )
}
