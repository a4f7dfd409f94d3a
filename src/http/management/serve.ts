// Serves the management API: matches the route, authorises the caller, checks the input, runs the handler and answers.

import { listAnswer } from '../../api/fields.ts'
import { openApiDocument } from '../../api/open-api.ts'
import { operations } from '../../api/operations.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { createId, type RequestId } from '../../kernel/ids.ts'
import { type Answer, EventStream, failureAnswer } from '../../pipeline/answer.ts'
import { type ClientRequest, queryOf } from '../../pipeline/client-request.ts'
import { isStoreUnavailable, storeUnavailable } from '../../store/sql-error.ts'
import { ReadCancelled } from '../../telemetry/read-log.ts'
import type { StoredAnswer } from '../../tenancy/idempotency.ts'
import { notFound } from '../../tenancy/management.ts'
import { installation, type Principal } from '../../tenancy/principal.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { type ApiAnswer, apiAnswer, apiHeaders, eventsAnswer, fileAnswer } from '../responses.ts'
import { checkSignInTime, reachOf } from './access.ts'
import { alertHandlers } from './alerts.ts'
import { auditHandlers } from './audit.ts'
import { type AuthorizeDependencies, createAuthorize } from './authorize.ts'
import { batchHandlers } from './batches.ts'
import { billHandlers } from './bills.ts'
import { catalogHandlers } from './catalog.ts'
import type { RouteDependencies } from './dependencies.ts'
import { checkBody, checkQuery, readJson } from './input.ts'
import { peopleHandlers } from './people.ts'
import { planHandlers } from './plans.ts'
import { providerHandlers } from './providers.ts'
import { requestHandlers } from './requests.ts'
import {
  createMatchRoute,
  type Download,
  hasIdForm,
  type Match,
  type Route,
  routesOf,
  type UntypedCall,
} from './route.ts'
import { signInHandlers } from './sign-ins.ts'
import { subjectLimitHandlers } from './subject-limits.ts'
import { walletHandlers } from './wallet.ts'
import { groupHandlers, keyHandlers, limitHandlers, projectHandlers, workspaceHandlers } from './workspaces.ts'
import { digestOf, runWrite } from './writes.ts'

export interface ManagementDependencies extends RouteDependencies, AuthorizeDependencies {
  /** Limits the work done for callers without a token. */
  readonly budget: {
    /** undefined = the budget is used up for now. */
    spend<Result>(run: () => Result): Promise<Awaited<Result> | undefined>
    /** Completes work that `spend` started. */
    finish<Result>(run: () => Result): Promise<Awaited<Result>>
    spendFreely<Result>(run: () => Result): Promise<Awaited<Result>>
  }
  /** In the error format of the chat surface. */
  renderFailure(failure: Failure, id: RequestId): string
}

/** Long work, such as the export of a year, is silent for longer than an unauthenticated connection may be idle. */
export interface IdleTimeout {
  keepOpen(): void
  rearm(): void
}

/** `path` is the result of pathOf; undefined = not a path of this API. */
export type ManagementApi = (request: ClientRequest, path: string, socket?: IdleTimeout) => Promise<Answer | undefined>

type Served = ApiAnswer | Download | EventStream

const busyRetryMs = 1000
const managedByHeader = 'x-tollgate-managed-by'

export function createManagementApi(deps: ManagementDependencies): ManagementApi {
  const { clock } = deps
  const matchRoute = createMatchRoute(managementRoutes(deps))
  const authorize = createAuthorize(deps)
  /** Idempotency keys of requests running in this process; the same key elsewhere waits in the database. */
  const running = new Set<string>()

  async function serve(
    request: ClientRequest,
    path: string,
    requestId: RequestId,
    socket: IdleTimeout | undefined,
  ): Promise<Served> {
    const match = matchRoute(request.method, path)
    const { route } = match
    const principal = isPublic(route) ? anyone : await authorize(request)
    if (principal instanceof Failure) throw principal
    if (route.kind !== undefined && !hasIdForm(match)) throw notFound(route.kind, match.id)
    const { json, ...checked } = await readInput(request, match)
    const reach = await reachOf(deps.database.sql, principal, match, checked)
    checkSignInTime(principal, match, clock.now())
    // Others belong to their workspaces; an operator may name one that does not exist.
    if (route.kind === 'workspace') await getWorkspace(deps.database.sql, match.id)
    if (principal !== anyone) socket?.keepOpen()
    const act = { actor: principal.name, at: clock.now(), requestId, managedBy: readManager(request, principal) }
    const call: UntypedCall = {
      ...checked,
      id: match.id,
      provider: match.provider,
      model: match.model,
      list: match.list,
      plan: match.plan,
      act,
      reach,
      address: deps.addressOf(request),
      signal: request.signal,
    }
    if (route.events) return request.method === 'HEAD' ? { status: 200, body: '' } : await route.events(call)
    if (route.download) return request.method === 'HEAD' ? { status: 200, body: '' } : route.download(call)
    if (principal === anyone) return await runPublic(request, route, call)
    if (call.idempotencyKey === undefined) return await run(route, call, undefined)
    // The answer may hold a secret, so each person has their own idempotency keys.
    const scope = principal.kind === 'installation' ? `api:${path}` : `api:${principal.name}:${path}`
    const once = `${scope} ${call.idempotencyKey}`
    if (running.has(once)) throw stillRunning()
    running.add(once)
    try {
      return await run(route, call, { scope, bodySha256: digestOf(json) })
    } finally {
      running.delete(once)
    }
  }

  /**
   * The operator is served even when the public budget is used up. A console session is checked first; a token only
   * when it is needed, because a wrong token counts as a guess.
   */
  async function runPublic(request: ClientRequest, route: Route, call: UntypedCall): Promise<ApiAnswer> {
    const { spend, finish, spendFreely } = deps.budget
    if (!(await isOperator(request))) {
      const value = await spend(() => route.run?.(call))
      if (value !== undefined) return await finish(() => answerOf(route, value))
      const principal = await authorize(request)
      if (principal instanceof Failure || !principal.isOperator) throw overloaded()
    }
    const value = await spendFreely(() => route.run?.(call))
    return await spendFreely(() => answerOf(route, value))
  }

  /** False if the session cannot be looked up: the catalog is shown even while the database is unreachable. */
  async function isOperator(request: ClientRequest): Promise<boolean> {
    try {
      const session = await deps.sessionOf?.(request)
      // Not everyone who is signed in: anyone may have an account where sign-up is open.
      return session !== undefined && !(session instanceof Failure) && session.isOperator
    } catch (error) {
      if (isStoreUnavailable(error)) return false
      throw error
    }
  }

  async function run(
    route: Route,
    call: UntypedCall,
    keyed: { readonly scope: string; readonly bodySha256: string } | undefined,
  ): Promise<ApiAnswer> {
    const { act, idempotencyKey: key } = call
    const request = keyed && key !== undefined ? { ...keyed, key, ...act } : undefined
    const answer = route.write
      ? await runWrite(deps, request, async (sql) => answerOf(route, await route.write?.(sql, call)))
      : answerOf(route, await route.run?.(call))
    route.committed?.(call)
    const changes = await route.afterCommit?.(call)
    if (!changes) return answer
    const changed = { ...answer, body: JSON.stringify({ ...JSON.parse(answer.body), ...changes }) }
    // A retry gets the changed answer too.
    if (request) await deps.database.transaction((sql) => deps.idempotency.complete(sql, request, changed))
    return changed
  }

  async function answer(request: ClientRequest, path: string, socket: IdleTimeout | undefined): Promise<Answer> {
    const id = createId('req')
    try {
      const outcome = await serve(request, path, id, socket)
      if ('pieces' in outcome) {
        return fileAnswer(outcome, id, (thrown) => {
          if (!(thrown instanceof ReadCancelled)) deps.onDefect(thrown, id)
        })
      }
      socket?.rearm()
      return outcome instanceof EventStream ? eventsAnswer(outcome, id) : apiAnswer(outcome, id, request.headers)
    } catch (thrown) {
      socket?.rearm()
      if (thrown instanceof Failure) return refuse(thrown, id)
      // Nobody reads this answer.
      if (thrown instanceof ReadCancelled) return refuse(overloaded(), id)
      return refuse(isStoreUnavailable(thrown) ? storeUnavailable() : deps.onDefect(thrown, id), id)
    }
  }

  function refuse(failure: Failure, id: RequestId): Answer {
    return failureAnswer(deps, failure, apiHeaders(id), id)
  }

  return async (request, path, socket) => (path.startsWith('/api/') ? await answer(request, path, socket) : undefined)
}

/** All routes of this gateway, in the order in which they are matched. */
export function managementRoutes(deps: RouteDependencies): readonly Route[] {
  let document: object | undefined
  return routesOf({
    ...workspaceHandlers(deps),
    ...walletHandlers(deps),
    ...planHandlers(deps),
    ...projectHandlers(deps),
    ...keyHandlers(deps),
    ...limitHandlers(deps),
    ...groupHandlers(deps),
    ...subjectLimitHandlers(deps),
    ...providerHandlers(deps),
    ...batchHandlers(deps),
    ...billHandlers(deps),
    ...catalogHandlers(deps),
    ...requestHandlers(deps),
    ...alertHandlers(deps),
    ...peopleHandlers(deps),
    ...signInHandlers(deps),
    ...auditHandlers(deps),
    getConfig: async () => listAnswer(deps.settings()),
    async getOpenApi() {
      document ??= openApiDocument(Object.values(operations), deps.version)
      return { openapi: '3.1.0', ...document }
    },
  })
}

/** The caller of a public operation. */
const anyone = installation('public')

function isPublic(route: Route): boolean {
  return route.public === 'always' || (route.public === 'by setting' && route.isPublic?.() === true)
}

/** `file`: the object belongs to a configuration file, and only the file can change it from then on. */
function readManager(request: ClientRequest, { isOperator }: Principal): 'file' | undefined {
  const manager = request.headers.get(managedByHeader)
  if (manager === null || manager === 'api') return undefined
  if (manager === 'file' && isOperator) return manager
  if (manager === 'file') throw new Failure('FORBIDDEN', 'Only operators apply configuration files.')
  throw invalidRequest(`\`${managedByHeader}\` must be api or file.`, managedByHeader)
}

interface Input {
  readonly body: unknown
  readonly query: unknown
  /** The body before it was checked. */
  readonly json: unknown
  readonly idempotencyKey: string | undefined
}

async function readInput(request: ClientRequest, { route }: Match): Promise<Input> {
  const query = route.query && checkQuery(route.query, queryOf(request.url))
  const idempotencyKey = route.method === 'POST' ? request.headers.get('idempotency-key') : null
  if (idempotencyKey !== null && !/^[ -~]{1,255}$/.test(idempotencyKey)) {
    throw invalidRequest('`Idempotency-Key` must have 1 to 255 printable ASCII characters.', 'Idempotency-Key')
  }
  const rest = { query, idempotencyKey: idempotencyKey ?? undefined }
  if (!route.body) return { ...rest, body: undefined, json: undefined }
  const json = await readJson(request)
  return { ...rest, body: checkBody(route.body, json), json }
}

function answerOf({ status }: Route, value: unknown): StoredAnswer {
  return { status, body: status === 204 ? '' : JSON.stringify(value) }
}

function stillRunning(): Failure {
  return new Failure('LIMIT_EXCEEDED', 'A request with this Idempotency-Key is still running. Retry in a second.', {
    retryAfterMs: busyRetryMs,
  })
}

function overloaded(): Failure {
  return new Failure('OVERLOADED', 'Too many requests at once. Retry in a second, or send the management token.', {
    retryAfterMs: busyRetryMs,
  })
}
