// The OpenAPI 3.1 document, made from the same rows that serve the API.

import { z } from 'zod'
import { modelEntrySchema } from '../catalog/entry.ts'
import { alertRuleSchema } from './alerts.ts'
import { batchSchema } from './batches.ts'
import { catalogModelSchema, catalogPriceSchema, priceListSchema } from './catalog.ts'
import { limitsField } from './fields.ts'
import { groupSchema } from './groups.ts'
import type { Operation } from './operation.ts'
import { invitationSchema, managementTokenSchema, memberSchema } from './people.ts'
import { planSchema, workspacePlanSchema } from './plans.ts'
import { keySchema, keyWithSecretSchema, projectSchema } from './projects.ts'
import { credentialSchema } from './providers.ts'
import { explainedRequestSchema, requestSchema } from './requests.ts'
import { signInSchema } from './sign-ins.ts'
import { auditSchema } from './system.ts'
import { correctionSchema, topUpSchema, transferSchema, walletSchema } from './wallet.ts'
import { workspaceSchema } from './workspaces.ts'

type Json = Record<string, unknown>

const errorSchema = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable().describe('The invalid field.'),
    code: z.string().describe('A code of docs/errors.md, such as INVALID_REQUEST.'),
    metadata: z
      .record(z.string(), z.string())
      .optional()
      .describe('Values for programs: a 402 has `balance`, `held` and `needed`.'),
  }),
})

/** Schemas with a name in the document; the others are written where they are used. */
const named: Readonly<Record<string, z.ZodType>> = {
  Price: modelEntrySchema.shape.price.unwrap(),
  Workspace: workspaceSchema,
  Project: projectSchema,
  Key: keySchema,
  Group: groupSchema,
  KeyWithSecret: keyWithSecretSchema,
  Limits: limitsField,
  Wallet: walletSchema,
  TopUp: topUpSchema,
  Correction: correctionSchema,
  Plan: planSchema,
  WorkspacePlan: workspacePlanSchema,
  Transfer: transferSchema,
  Credential: credentialSchema,
  Member: memberSchema,
  Invitation: invitationSchema,
  ManagementToken: managementTokenSchema,
  SignIn: signInSchema,
  AuditEntry: auditSchema,
  Request: requestSchema,
  ExplainedRequest: explainedRequestSchema,
  Batch: batchSchema,
  CatalogModel: catalogModelSchema,
  CatalogPrice: catalogPriceSchema,
  PriceList: priceListSchema,
  AlertRule: alertRuleSchema,
  Error: errorSchema,
}

const refOf = (name: string) => `#/components/schemas/${name}`

export function openApiDocument(operations: readonly Operation[], version: string): object {
  const schemas = jsonSchemas(operations)
  const paths: Record<string, Json> = {}
  for (const row of operations) {
    const path = paths[row.path] ?? {}
    path[row.method.toLowerCase()] = describe(row, schemas)
    paths[row.path] = path
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate management API',
      version,
      description: 'Amounts are decimal strings in USD, times are ISO 8601, unknown fields are rejected.',
    },
    security: [{ managementToken: [] }],
    paths,
    components: {
      securitySchemes: { managementToken: { type: 'http', scheme: 'bearer', description: 'The management token.' } },
      schemas: Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, schemas.get(schema)])),
    },
  }
}

/** All at once, so that named schemas become references wherever they are used. Operations may share one. */
function jsonSchemas(operations: readonly Operation[]): ReadonlyMap<z.ZodType, unknown> {
  const ids = new Map<z.ZodType, string>(Object.entries(named).map(([id, schema]) => [schema, id]))
  for (const { name, body, answer } of operations) {
    if (body && !ids.has(body)) ids.set(body, `${name} body`)
    if (answer && !ids.has(answer)) ids.set(answer, `${name} answer`)
  }
  const registry = z.registry<{ id: string }>()
  for (const [schema, id] of ids) registry.add(schema, { id })
  // As input: a body is described before it is converted, and answers may get more members later.
  const { schemas } = z.toJSONSchema(registry, { io: 'input', uri: refOf })
  return new Map(
    [...ids].map(([schema, id]) => {
      const { $schema: _dialect, $id: _address, ...written } = schemas[id] ?? {}
      return [schema, written] as const
    }),
  )
}

function describe(row: Operation, schemas: ReadonlyMap<z.ZodType, unknown>): Json {
  const schemaOf = (schema: z.ZodType) => {
    const name = Object.keys(named).find((known) => named[known] === schema)
    return name === undefined ? schemas.get(schema) : { $ref: refOf(name) }
  }
  const json = (schema: unknown, example?: unknown) => ({
    'application/json': { schema, ...(example === undefined ? {} : { example }) },
  })
  const { name: id, body, answer, status } = row
  const answered = answer && schemaOf(answer)
  const success = {
    description: successWords[status],
    ...(answered
      ? { content: row.isEventStream ? { 'text/event-stream': { schema: answered } } : json(answered) }
      : {}),
    ...(row.fileTypes && {
      content: Object.fromEntries(row.fileTypes.map((type) => [type, { schema: { type: 'string' } }])),
    }),
  }
  return {
    operationId: id,
    summary: row.summary,
    ...(row.public ? { security: row.public === 'always' ? [] : [{}, { managementToken: [] }] } : {}),
    parameters: parameters(row),
    ...(body
      ? {
          requestBody: {
            required: !body.safeParse({}).success,
            content: json(schemaOf(body), row.example),
          },
        }
      : {}),
    responses: {
      [status]: success,
      default: { description: 'What went wrong and what to do.', content: json({ $ref: refOf('Error') }) },
    },
  }
}

const successWords = { 200: 'Success.', 201: 'Created.', 204: 'Success, without a body.' } as const

function parameters({ method, path, kind, query }: Operation): Json[] {
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
  description: 'A retry with the same key within 24 hours gets the first answer; nothing is done twice.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}
