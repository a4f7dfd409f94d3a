// The OpenAPI 3.1 document, made from the same rows that serve the calls. It adds words and never rules.

import { z } from 'zod'
import {
  auditSchema,
  correctionSchema,
  credentialSchema,
  keySchema,
  keyWithSecretSchema,
  projectSchema,
  topUpSchema,
  transferSchema,
  walletSchema,
  workspaceSchema,
} from './answers.ts'
import { catalogModelSchema } from './catalog-answer.ts'
import { limitsField } from './fields.ts'
import { explainedRequestSchema, requestSchema } from './request-answer.ts'
import { defineRoute, type Route } from './route.ts'

type Json = Record<string, unknown>

const errorSchema = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable().describe('The field that is wrong.'),
    code: z.string().describe('A code of docs/errors.md, such as INVALID_REQUEST.'),
    metadata: z
      .record(z.string(), z.string())
      .optional()
      .describe('Facts for programs: a 402 has `balance`, `held` and `needed`.'),
  }),
})

/** What stands under its own name in the document; everything else is written where it is used. */
const named: Readonly<Record<string, z.ZodType>> = {
  Workspace: workspaceSchema,
  Project: projectSchema,
  Key: keySchema,
  KeyWithSecret: keyWithSecretSchema,
  Limits: limitsField,
  Wallet: walletSchema,
  TopUp: topUpSchema,
  Correction: correctionSchema,
  Transfer: transferSchema,
  Credential: credentialSchema,
  AuditEntry: auditSchema,
  Request: requestSchema,
  ExplainedRequest: explainedRequestSchema,
  CatalogModel: catalogModelSchema,
  Error: errorSchema,
}

const refOf = (name: string) => `#/components/schemas/${name}`

export function openApiRoute(readDocument: () => object): Route {
  return defineRoute({
    method: 'GET',
    path: '/api/openapi.json',
    operation: 'getOpenApi',
    summary: 'Public: this document.',
    isPublic: true,
    answer: z.looseObject({ openapi: z.string() }),
    status: 200,
    run: async () => ({ openapi: '3.1.0', ...readDocument() }),
  })
}

export function openApiDocument(routes: readonly Route[], version: string): object {
  const schemas = jsonSchemas(routes)
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const path = paths[route.path] ?? {}
    path[route.method.toLowerCase()] = operation(route, schemas)
    paths[route.path] = path
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate management API',
      version,
      description: 'Money is a decimal string in USD, times are ISO 8601, unknown fields are refused.',
    },
    security: [{ managementToken: [] }],
    paths,
    components: {
      securitySchemes: { managementToken: { type: 'http', scheme: 'bearer', description: 'The management token.' } },
      schemas: Object.fromEntries(Object.keys(named).map((name) => [name, schemas.get(name)])),
    },
  }
}

/** All in one go, so that what is named is referred to wherever it is used. */
function jsonSchemas(routes: readonly Route[]): ReadonlyMap<string, unknown> {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  for (const { operation: id, body, answer } of routes) {
    if (body && !registry.has(body)) registry.add(body, { id: `${id} body` })
    if (answer && !registry.has(answer)) registry.add(answer, { id: `${id} answer` })
  }
  // As input: a body is described before it is transformed, and an answer may get more members one day.
  const { schemas } = z.toJSONSchema(registry, { io: 'input', uri: refOf })
  return new Map(
    Object.entries(schemas).map(([id, { $schema: _dialect, $id: _address, ...schema }]) => [id, schema] as const),
  )
}

function operation(route: Route, schemas: ReadonlyMap<string, unknown>): Json {
  const schemaOf = (schema: z.ZodType, id: string) => {
    const name = Object.keys(named).find((known) => named[known] === schema)
    return name === undefined ? schemas.get(id) : { $ref: refOf(name) }
  }
  const json = (schema: unknown, example?: unknown) => ({
    'application/json': { schema, ...(example === undefined ? {} : { example }) },
  })
  const { operation: id, body, answer, status } = route
  const answered = answer && schemaOf(answer, `${id} answer`)
  const success = {
    description: successWords[status],
    ...(answered ? { content: route.events ? { 'text/event-stream': { schema: answered } } : json(answered) } : {}),
    ...(route.fileTypes && {
      content: Object.fromEntries(route.fileTypes.map((type) => [type, { schema: { type: 'string' } }])),
    }),
  }
  return {
    operationId: id,
    summary: route.summary,
    ...(route.isPublic ? { security: route.isPublic === true ? [] : [{}, { managementToken: [] }] } : {}),
    parameters: parameters(route),
    ...(body
      ? {
          requestBody: {
            required: !body.safeParse({}).success,
            content: json(schemaOf(body, `${id} body`), route.example),
          },
        }
      : {}),
    responses: {
      [status]: success,
      default: { description: 'What is wrong, and what to do.', content: json({ $ref: refOf('Error') }) },
    },
  }
}

const successWords = { 200: 'Done.', 201: 'Made.', 204: 'Done; there is nothing to say.' } as const

function parameters({ method, path, kind, query }: Route): Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    description: name === 'id' ? `The id of the ${kind}.` : `The id of the ${name}.`,
    schema: { type: 'string' },
  }))
  const inQuery = Object.entries(query?.shape ?? {}).map(([name, field]) => {
    const { $schema: _dialect, description, ...schema } = z.toJSONSchema(field as z.ZodType, { io: 'input' })
    return { name, in: 'query', required: false, ...(description === undefined ? {} : { description }), schema }
  })
  return method === 'POST' ? [...inPath, ...inQuery, idempotencyParameter] : [...inPath, ...inQuery]
}

const idempotencyParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'A retry with the same key within 24 hours gets the first answer, and nothing is done twice.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}
