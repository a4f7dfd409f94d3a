// API keys: made, listed, rotated, revoked. A secret stands in the answer of the call that made it and nowhere else.

import { z } from 'zod'
import { Failure } from '../../kernel/failure.ts'
import type { Database } from '../../store/database.ts'
import type { ComputeVerifier } from '../../tenancy/api-key.ts'
import type { Authenticator } from '../../tenancy/authenticate.ts'
import { createKey, getKey, listKeys, revokeKey, rotateKey } from '../../tenancy/keys.ts'
import { keyAnswer, keySchema, keyWithSecretSchema } from './answers.ts'
import {
  idField,
  limitsField,
  limitsFromBody,
  modelsField,
  must,
  nameField,
  sourcesField,
  timeField,
} from './fields.ts'
import { listAnswer, listSchema, pageFields, pageOf } from './paging.ts'
import { defineRoute, emptyBody, notFound, type Route } from './route.ts'

export interface KeyDependencies {
  readonly database: Database
  readonly computeVerifier: ComputeVerifier
  readonly invalidate: Authenticator['invalidate']
}

export function keyRoutes(deps: KeyDependencies): readonly Route[] {
  return [createKeyRoute(deps), ...readKeyRoutes(deps), ...changeKeyRoutes(deps)]
}

function createKeyRoute({ computeVerifier }: KeyDependencies): Route {
  return defineRoute({
    method: 'POST',
    path: '/api/projects/{id}/keys',
    kind: 'project',
    operation: 'createKey',
    summary: 'Makes a key; its secret is shown this once.',
    body: z.strictObject({
      name: nameField,
      models: modelsField.nullish().describe("Narrows the project's allowlist. Absent or null = all it allows."),
      limits: limitsField.nullish(),
      expires_at: timeField.nullish().describe('ISO 8601, with Z or an offset, in the future. Absent = never.'),
      sources: sourcesField.nullish(),
    }),
    example: { name: 'ci', limits: { requests_per_minute: 60, spend_per_day: '5.00' } },
    answer: keyWithSecretSchema,
    status: 201,
    async write(sql, { id, body, act }) {
      const wish = {
        projectId: id,
        name: body.name,
        models: body.models ?? undefined,
        limits: body.limits == null ? undefined : limitsFromBody(body.limits),
        expiresAt: body.expires_at ?? undefined,
        sources: body.sources ?? undefined,
      }
      const created = await createKey(sql, wish, act, computeVerifier)
      if (created === 'not found') return notFound('project', id)
      if (created instanceof Failure) return created
      return { ...keyAnswer(created.key, act.at), secret: created.secret }
    },
  })
}

function readKeyRoutes({ database }: KeyDependencies): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/keys',
      operation: 'listKeys',
      summary: 'Lists keys, oldest first; of a project or a workspace, or all.',
      query: z.strictObject({
        ...pageFields,
        workspace_id: idField('workspace').optional().describe('Only keys of this workspace.'),
        project_id: idField('project').optional().describe('Only keys of this project, whatever the workspace.'),
      }),
      answer: listSchema(keySchema),
      status: 200,
      async run({ query, act }) {
        const { workspace_id: workspaceId, project_id: projectId } = query
        const { items, nextCursor } = await listKeys(database.sql, { workspaceId, projectId, page: pageOf(query) })
        return listAnswer(
          items.map((key) => keyAnswer(key, act.at)),
          nextCursor,
        )
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/keys/{id}',
      kind: 'key',
      operation: 'getKey',
      summary: 'Reads one key.',
      answer: keySchema,
      status: 200,
      async run({ id, act }) {
        const key = await getKey(database.sql, id)
        return key === 'not found' ? notFound('key', id) : keyAnswer(key, act.at)
      },
    }),
  ]
}

function changeKeyRoutes({ computeVerifier, invalidate }: KeyDependencies): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/keys/{id}/revoke',
      kind: 'key',
      operation: 'revokeKey',
      summary: 'Ends a key for good; at once here, within 5 s on other replicas.',
      body: emptyBody,
      answer: keySchema,
      status: 200,
      async write(sql, { id, act }) {
        const key = await revokeKey(sql, id, act)
        if (key === 'not found') return notFound('key', id)
        return key instanceof Failure ? key : keyAnswer(key, act.at)
      },
      committed: ({ id }) => invalidate(id),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/keys/{id}/rotate',
      kind: 'key',
      operation: 'rotateKey',
      summary: 'Gives a key a new secret, shown this once; the old one ends at once, or after the overlap asked for.',
      body: z.strictObject({
        overlap_seconds: z
          .int(must('a whole number of seconds'))
          .min(0, must('a whole number of seconds, 0 or more'))
          .nullish()
          .describe('How long the old secret stays good. Absent = it ends at once.'),
      }),
      example: { overlap_seconds: 3600 },
      answer: keyWithSecretSchema,
      status: 200,
      async write(sql, { id, body, act }) {
        const wish = { overlapSeconds: body.overlap_seconds ?? undefined }
        const rotated = await rotateKey(sql, id, wish, act, computeVerifier)
        if (rotated === 'not found') return notFound('key', id)
        if (rotated instanceof Failure) return rotated
        return { ...keyAnswer(rotated.key, act.at), secret: rotated.secret }
      },
      committed: ({ id }) => invalidate(id),
    }),
  ]
}
