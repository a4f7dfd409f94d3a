// Serves the management API: finds the route, asks who calls, checks what was sent, runs the work, answers. The routes
// themselves stand in the …-routes files as data, and this file knows none of them by name.

import { createHash } from 'node:crypto'
import { Failure, invalidRequest, retryHeaders } from '../../kernel/failure.ts'
import { createId, type RequestId } from '../../kernel/ids.ts'
import { isStoreUnavailable } from '../../store/sql-error.ts'
import type { Idempotency, StoredAnswer } from '../../tenancy/idempotency.ts'
import { queryOf } from '../path.ts'
import { type Actor, type AuthorizeDependencies, createAuthorize } from './authorize.ts'
import { checkBody, checkQuery, readJson } from './check-input.ts'
import { createMatchRoute, hasIdForm, type Match } from './match-route.ts'
import { type Answer, answerHeaders, respond, respondEvents, respondFile } from './respond.ts'
import { type Download, notFound, type Route } from './route.ts'
import { managementRoutes, type RouteDependencies } from './route-table.ts'
import { createRunWrite } from './run-write.ts'

export interface ManagementDependencies extends RouteDependencies, AuthorizeDependencies {
  readonly idempotency: Idempotency
  /** What answers to strangers may cost. */
  readonly budget: {
    /** undefined = too much was spent just now. */
    spend<Result>(run: () => Result): Promise<Awaited<Result> | undefined>
    /** The rest of what was begun so. */
    finish<Result>(run: () => Result): Promise<Awaited<Result>>
    spendFreely<Result>(run: () => Result): Promise<Awaited<Result>>
  }
  /** In the chat surface's shape. */
  renderFailure(failure: Failure, id: RequestId): string
}

/** Work for minutes, such as an export of a year, is silent for longer than a connection may be that nobody is known at. */
export interface PatientSocket {
  keepOpen(): void
  rearm(): void
}

/** `path` is what pathOf made of the request; undefined = not ours. */
export type ManagementApi = (request: Request, path: string, socket?: PatientSocket) => Promise<Response> | undefined

/** A stream is one of events. */
type Served = Answer | Download | ReadableStream<Uint8Array>

type Call = Parameters<NonNullable<Route['run']>>[0]

const storeRetryMs = 1000
const twinRetryMs = 1000
const managedByHeader = 'x-tollgate-managed-by'

export function createManagementApi(deps: ManagementDependencies): ManagementApi {
  const { clock } = deps
  const matchRoute = createMatchRoute(managementRoutes(deps))
  const authorize = createAuthorize(deps)
  const runWrite = createRunWrite(deps)
  /** Keys of requests that run in this process; a twin elsewhere waits in the database. */
  const running = new Set<string>()

  async function serve(
    request: Request,
    path: string,
    requestId: RequestId,
    socket: PatientSocket | undefined,
  ): Promise<Served | Failure> {
    const match = matchRoute(request.method, path)
    if (match instanceof Failure) return match
    const { route } = match
    const actor = isOpen(route) ? stranger : await authorize(request)
    if (actor instanceof Failure) return actor
    if (route.kind !== undefined && !hasIdForm(match)) return notFound(route.kind, match.id)
    const input = await readInput(request, match)
    if (input instanceof Failure) return input
    if (actor !== stranger) socket?.keepOpen()
    const { json, ...checked } = input
    const managedBy = readManager(request)
    if (managedBy instanceof Failure) return managedBy
    const act = { actor: actor.name, at: clock.now(), requestId, managedBy }
    // The id was checked to be of the route's kind; the types of both were lost when the routes became one list.
    const call = { ...checked, id: match.id, provider: match.provider, model: match.model, act } as Call
    if (route.events) return request.method === 'HEAD' ? { status: 200, body: '' } : route.events(call, request.signal)
    if (route.download) return request.method === 'HEAD' ? { status: 200, body: '' } : route.download(call)
    if (actor === stranger) return await runOpen(request, route, call)
    const twin = call.idempotencyKey === undefined ? undefined : `${path} ${call.idempotencyKey}`
    if (twin === undefined) return await run(route, call, undefined)
    if (running.has(twin)) return twinRuns()
    running.add(twin)
    try {
      return await run(route, call, { scope: `api:${path}`, bodySha256: sha256(JSON.stringify(json)) })
    } finally {
      running.delete(twin)
    }
  }

  /**
   * Who turns out to be the operator is served however much strangers have asked for. Who is signed in to the console
   * does not even stand in line with them; a token is looked at only where it is needed, because a wrong one is a guess.
   */
  async function runOpen(request: Request, route: Route, call: Call): Promise<Answer | Failure> {
    const { spend, finish, spendFreely } = deps.budget
    if (!(await hasSession(request))) {
      const value = await spend(() => route.run?.(call))
      if (value !== undefined) return await finish(() => answerOf(route, value))
      if ((await authorize(request)) instanceof Failure) return tooManyAsk()
    }
    const value = await spendFreely(() => route.run?.(call))
    return await spendFreely(() => answerOf(route, value))
  }

  /** Who cannot be looked up is a stranger: the catalog is shown also while the database is away. */
  async function hasSession(request: Request): Promise<boolean> {
    try {
      const session = await deps.sessionOf?.(request)
      return session !== undefined && !(session instanceof Failure)
    } catch (error) {
      if (isStoreUnavailable(error)) return false
      throw error
    }
  }

  async function run(
    route: Route,
    call: Call,
    keyed: { readonly scope: string; readonly bodySha256: string } | undefined,
  ): Promise<Answer | Failure> {
    const { act, idempotencyKey: key } = call
    const request = keyed && key !== undefined ? { ...keyed, key, ...act } : undefined
    const answer = route.write
      ? await runWrite(request, async (sql) => answerOf(route, await route.write?.(sql, call)))
      : answerOf(route, await route.run?.(call))
    if (!(answer instanceof Failure)) route.committed?.(call)
    return answer
  }

  async function answer(request: Request, path: string, socket: PatientSocket | undefined): Promise<Response> {
    const id = createId('req')
    try {
      const outcome = await serve(request, path, id, socket)
      if (!(outcome instanceof Failure) && 'pieces' in outcome) {
        return respondFile(outcome, id, (thrown) => void deps.onDefect(thrown, id))
      }
      socket?.rearm()
      if (outcome instanceof Failure) return refuse(outcome, id)
      return outcome instanceof ReadableStream ? respondEvents(outcome, id) : respond(outcome, id)
    } catch (thrown) {
      socket?.rearm()
      return refuse(isStoreUnavailable(thrown) ? storeUnavailable() : deps.onDefect(thrown, id), id)
    }
  }

  function refuse(failure: Failure, id: RequestId): Response {
    const headers = { ...answerHeaders(id), ...retryHeaders(failure) }
    if (failure.facts.allow !== undefined) headers.allow = failure.facts.allow
    if (failure.status === 401) headers['www-authenticate'] = 'Bearer realm="Tollgate"'
    return new Response(deps.renderFailure(failure, id), { status: failure.status, headers })
  }

  return (request, path, socket) => (path.startsWith('/api/') ? answer(request, path, socket) : undefined)
}

/** Nobody was asked for a token. */
const stranger: Actor = Object.freeze({ name: 'public' })

function isOpen({ isPublic }: Route): boolean {
  return typeof isPublic === 'function' ? isPublic() : isPublic === true
}

/** `file`: what is made belongs to a file, which alone changes it from then on. */
function readManager(request: Request): 'file' | undefined | Failure {
  const manager = request.headers.get(managedByHeader)
  if (manager === null || manager === 'api') return undefined
  return manager === 'file' ? manager : invalidRequest(`\`${managedByHeader}\` must be api or file.`, managedByHeader)
}

interface Input {
  readonly body: unknown
  readonly query: unknown
  /** The body before it was checked. */
  readonly json: unknown
  readonly idempotencyKey: string | undefined
}

async function readInput(request: Request, { route }: Match): Promise<Input | Failure> {
  const query = route.query && checkQuery(route.query, queryOf(request.url))
  if (query instanceof Failure) return query
  const idempotencyKey = route.method === 'POST' ? request.headers.get('idempotency-key') : null
  if (idempotencyKey !== null && !/^[ -~]{1,255}$/.test(idempotencyKey)) {
    return invalidRequest('`Idempotency-Key` must have 1 to 255 printable ASCII characters.', 'Idempotency-Key')
  }
  const rest = { query: query?.value, idempotencyKey: idempotencyKey ?? undefined }
  if (!route.body) return { ...rest, body: undefined, json: undefined }
  const json = await readJson(request)
  if (json instanceof Failure) return json
  const body = checkBody(route.body, json.value)
  return body instanceof Failure ? body : { ...rest, body: body.value, json: json.value }
}

function answerOf({ status }: Route, value: unknown): StoredAnswer | Failure {
  return value instanceof Failure ? value : { status, body: status === 204 ? '' : JSON.stringify(value) }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function twinRuns(): Failure {
  return new Failure('LIMIT_EXCEEDED', 'A request with this Idempotency-Key is still running. Retry in a second.', {
    retryAfterMs: twinRetryMs,
  })
}

function tooManyAsk(): Failure {
  return new Failure('OVERLOADED', 'Too many ask at once. Retry in a second, or send the management token.', {
    retryAfterMs: twinRetryMs,
  })
}

function storeUnavailable(): Failure {
  return new Failure('OVERLOADED', 'Tollgate cannot reach its database. Retry in a second.', {
    retryAfterMs: storeRetryMs,
  })
}
