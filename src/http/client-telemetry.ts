// POST /v1/metrics, /v1/logs and /v1/traces: what Claude Code reports of itself (OTLP in protobuf or JSON, perhaps gzipped). It is
// passed on to the operator's collector with whose it is, or dropped; nothing of it is stored or logged here.

import { gunzipSync } from 'node:zlib'
import type { Dialect } from '../dialects/dialect.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { createId, type KeyId } from '../kernel/ids.ts'
import { Answer, requestIdHeaders } from '../pipeline/answer.ts'
import { bodyFailure, type ClientRequest } from '../pipeline/client-request.ts'
import type { Database } from '../store/database.ts'
import type { OtlpExporter } from '../telemetry/otlp.ts'
import { addJsonResourceAttributes, addResourceAttributes } from '../telemetry/otlp-attributes.ts'
import { allowsSource, sourceFailure } from '../tenancy/allowlist.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import { BodyFault, readBody } from '../wire/read-body.ts'
import { refuse } from './responses.ts'

const signals = { '/v1/metrics': 'metrics', '/v1/logs': 'logs', '/v1/traces': 'traces' } as const

export function isTelemetryPath(path: string): path is keyof typeof signals {
  return Object.hasOwn(signals, path)
}

export interface ClientTelemetryDependencies {
  authenticate(headers: RequestHeaders): Caller | Failure | Promise<Caller | Failure>
  readonly database: Database
  /** Sends it to the collector in the background; undefined = there is none, or the operator does not want it. */
  relay(): OtlpExporter['relay'] | undefined
}

const bodyBytesMax = 4 * 1024 * 1024
const tooLong = 'Telemetry may have at most 4 MiB in one request.'
/** With how the attributes are added; its result is undefined if the body is none. */
const types = {
  'application/x-protobuf': addResourceAttributes,
  'application/json': addJsonResourceAttributes,
} as const

export function createClientTelemetryRoute(deps: ClientTelemetryDependencies) {
  return async (
    request: ClientRequest,
    surface: Dialect,
    address: string | undefined,
    path: keyof typeof signals,
  ): Promise<Answer> => {
    const type = typeOf(request.headers)
    const failure = await accept(deps, request, address, { path, type })
    if (failure) return refuse(surface, failure)
    // An empty message: everything was accepted.
    const headers = { ...requestIdHeaders(createId('req')), ...(type && { 'content-type': type }) }
    return new Answer(200, headers, type === 'application/json' ? '{}' : undefined)
  }
}

function typeOf(headers: RequestHeaders): keyof typeof types | undefined {
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? ''
  return Object.hasOwn(types, type) ? (type as keyof typeof types) : undefined
}

async function accept(
  { authenticate, database, relay }: ClientTelemetryDependencies,
  request: ClientRequest,
  address: string | undefined,
  { path, type }: { readonly path: keyof typeof signals; readonly type: keyof typeof types | undefined },
): Promise<Failure | undefined> {
  const caller = await authenticate(request.headers)
  if (caller instanceof Failure) return caller
  if (!allowsSource(caller, address)) return sourceFailure(caller, address)
  const encoding = request.headers.get('content-encoding') ?? 'identity'
  if (type === undefined || (encoding !== 'gzip' && encoding !== 'identity')) {
    const message = `Send OTLP as ${Object.keys(types).join(' or ')}, as it is or with gzip.`
    return new Failure('UNSUPPORTED_MEDIA_TYPE', message)
  }
  const read = await readBody(request, bodyBytesMax)
  if (read instanceof BodyFault) return bodyFailure(read, tooLong)
  const pass = relay()
  if (!pass) return undefined
  const body = encoding === 'gzip' ? unpacked(read) : read
  if (body instanceof BodyFault) return bodyFailure(body, tooLong)
  const marked = body && types[type](body, await attributesOf(database, caller))
  if (!marked) return invalidRequest('The body is no OTLP message.')
  pass(signals[path], marked)
  return undefined
}

/** undefined = it is not gzipped. */
function unpacked(body: Uint8Array): Uint8Array | BodyFault | undefined {
  try {
    return gunzipSync(body, { maxOutputLength: bodyBytesMax })
  } catch (thrown) {
    const isTooLarge = (thrown as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
    return isTooLarge ? new BodyFault('too-large') : undefined
  }
}

/** Whose it is: the key, its project and workspace, and the person who signed in with it or created it. */
async function attributesOf({ sql }: Database, caller: Caller): Promise<Readonly<Record<string, string>>> {
  const person = await personOf(sql, caller.keyId)
  return {
    'tollgate.workspace.id': caller.workspaceId,
    'tollgate.project.id': caller.projectId,
    'tollgate.key.id': caller.keyId,
    ...(person && { 'tollgate.person.id': person.id, 'tollgate.person.email': person.email }),
  }
}

async function personOf(sql: Database['sql'], keyId: KeyId) {
  const [person] = await sql<{ id: string; email: string }>`SELECT o.id, o.email FROM api_keys k
    JOIN people o ON o.id = k.owner_id WHERE k.id = ${keyId}`
  return person
}
