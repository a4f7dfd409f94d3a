// Projects: they group keys and say which models those may see.

import { z } from 'zod'
import { Failure } from '../../kernel/failure.ts'
import type { Database } from '../../store/database.ts'
import type { Authenticator } from '../../tenancy/authenticate.ts'
import { createProject, getProject, listProjects, updateProject } from '../../tenancy/projects.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { projectAnswer, projectSchema } from './answers.ts'
import { modelsField, nameField } from './fields.ts'
import { listAnswer, listSchema, pageOf, pageQuery } from './paging.ts'
import { defineRoute, notFound, type Route } from './route.ts'

export interface ProjectDependencies {
  readonly database: Database
  readonly invalidate: Authenticator['invalidate']
}

export function projectRoutes({ database, invalidate }: ProjectDependencies): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/workspaces/{id}/projects',
      kind: 'workspace',
      operation: 'createProject',
      summary: 'Makes a project in a workspace.',
      body: z.strictObject({ name: nameField, models: modelsField.nullish() }),
      example: { name: 'web', models: ['acme/*', 'other/large'] },
      answer: projectSchema,
      status: 201,
      async write(sql, { id, body: { name, models }, act }) {
        const project = await createProject(sql, { workspaceId: id, name, models: models ?? undefined }, act)
        if (project === 'not found') return notFound('workspace', id)
        return project instanceof Failure ? project : projectAnswer(project)
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/workspaces/{id}/projects',
      kind: 'workspace',
      operation: 'listProjects',
      summary: 'Lists the projects of a workspace, oldest first.',
      query: pageQuery,
      answer: listSchema(projectSchema),
      status: 200,
      async run({ id, query }) {
        if ((await getWorkspace(database.sql, id)) === 'not found') return notFound('workspace', id)
        const { items, nextCursor } = await listProjects(database.sql, id, pageOf(query))
        return listAnswer(items.map(projectAnswer), nextCursor)
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/projects/{id}',
      kind: 'project',
      operation: 'getProject',
      summary: 'Reads one project.',
      answer: projectSchema,
      status: 200,
      async run({ id }) {
        const project = await getProject(database.sql, id)
        return project === 'not found' ? notFound('project', id) : projectAnswer(project)
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: '/api/projects/{id}',
      kind: 'project',
      operation: 'updateProject',
      summary: 'Changes the name or the allowlist; what is left out stays. Effective for the next call.',
      body: z.strictObject({
        name: nameField.optional(),
        models: modelsField.nullish().describe('The whole new allowlist; null = every model.'),
      }),
      example: { models: ['acme/large'] },
      answer: projectSchema,
      status: 200,
      async write(sql, { id, body, act }) {
        const project = await updateProject(sql, id, body, act)
        if (project === 'not found') return notFound('project', id)
        return project instanceof Failure ? project : projectAnswer(project)
      },
      committed: ({ id }) => invalidate(id),
    }),
  ]
}
