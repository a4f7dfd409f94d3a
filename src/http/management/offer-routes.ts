// What the keys of a project can call now: the same models as GET /v1/models answers to such a key. Nothing is changed.

import { z } from 'zod'
import type { Database } from '../../store/database.ts'
import { getProject, type Project } from '../../tenancy/projects.ts'
import { listAnswer, listSchema } from './paging.ts'
import { defineRoute, notFound, type Route } from './route.ts'

export interface OfferedItem {
  readonly id: string
  readonly owned_by: string
  /** A credential of the workspace's own is used for it. */
  readonly own_key: boolean
  /** Where: the workspace has a credential there and the model a route. */
  readonly own_providers: readonly string[]
}

export interface OfferDependencies {
  readonly database: Database
  /** By id; for a key that has no allowlist of its own. */
  modelsOf(project: Project): Promise<readonly OfferedItem[]>
}

const offeredSchema = z.object({
  id: z.string(),
  owned_by: z.string(),
  own_key: z.boolean().describe('A credential of the workspace’s own is used for it.'),
  own_providers: z.array(z.string()).readonly().describe('The providers that it is used at.'),
})

export function offerRoutes({ database, modelsOf }: OfferDependencies): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/projects/{id}/models',
      kind: 'project',
      operation: 'listProjectModels',
      summary:
        'Lists what the keys of a project can call now, by id and all at once, as GET /v1/models does for such a key.',
      answer: listSchema(offeredSchema),
      status: 200,
      async run({ id }) {
        const project = await getProject(database.sql, id)
        return project === 'not found' ? notFound('project', id) : listAnswer(await modelsOf(project), undefined)
      },
    }),
  ]
}
