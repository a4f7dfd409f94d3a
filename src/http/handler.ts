// Routes inbound requests by path. It authorises nothing and reads no body; unknown paths get a 404 with a suggestion.

import type { Dialect } from '../dialects/dialect.ts'
import { publicPath, surfaceFor, surfaceList, surfaces } from '../dialects/registry.ts'
import { type ModelPath, type Operation, operations } from '../dialects/surface.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { createId, type RequestId } from '../kernel/ids.ts'
import { nearestNames } from '../kernel/nearest.ts'
import { Answer, type AnswerHeaders, requestIdHeaders } from '../pipeline/answer.ts'
import { type ClientRequest, pathOf } from '../pipeline/client-request.ts'
import type { Connection } from '../pipeline/exchange.ts'
import type { RunRequest } from '../pipeline/run.ts'
import { hideKeys } from '../tenancy/api-key.ts'
import type { BatchCall } from './batches/route.ts'
import { type createClientTelemetryRoute, isTelemetryPath } from './client-telemetry.ts'
import { managedSettingsPath } from './managed-settings.ts'
import { metricsPath } from './metrics.ts'
import { type StripePayments, webhookPath } from './payments/stripe.ts'
import { isPlainPath, segmentsMax } from './request.ts'
import { refuse, wrongMethod } from './responses.ts'
import type { OpenSocket } from './responses-socket.ts'
import type { ConnectionControl } from './server/incoming-request.ts'
import { isHandshake } from './server/web-socket.ts'
import { spendPath } from './spend.ts'

export interface HandlerDependencies {
  readonly generate: RunRequest
  readonly countTokens: RunRequest
  readonly compact: RunRequest
  readonly embed: RunRequest
  /** Makes the connection of a request a WebSocket, whose messages are generations. */
  readonly openSocket: OpenSocket
  /** Serves the list of models, or one of them; `encodedId` is empty for the list. */
  models(request: ClientRequest, surface: Dialect, address: string | undefined, encodedId: string): Promise<Answer>
  /** Serves GET /v1/model/info. */
  modelInfo(request: ClientRequest, surface: Dialect, address: string | undefined): Promise<Answer>
  /** Serves GET /api/oauth/usage, with the caller's key. */
  spend(request: ClientRequest, surface: Dialect, address: string | undefined): Promise<Answer>
  /** Serves GET /managed/settings, with the caller's key or token. */
  managedSettings(request: ClientRequest, surface: Dialect, address: string | undefined): Promise<Answer>
  /** Takes what Claude Code reports of itself, with the caller's key or token. */
  clientTelemetry: ReturnType<typeof createClientTelemetryRoute>
  /** Serves responses that callers had stored; undefined = not one of their paths, or nothing is stored. */
  storedResponses(
    request: ClientRequest,
    surface: Dialect,
    address: string | undefined,
    path: string,
  ): Promise<Answer | undefined>
  /** Serves /v1/files and /v1/batches; undefined = not one of their paths, or there are no batches here. */
  openaiBatches(call: BatchCall, path: string): Promise<Answer | undefined>
  /** Serves /v1/messages/batches; likewise. */
  anthropicBatches(call: BatchCall, path: string): Promise<Answer | undefined>
  readonly settings: { readonly current: HandlerSettings }
  /** Serves /api; undefined = not one of its paths. */
  management(
    request: ClientRequest,
    path: string,
    socket: Pick<Connection, 'keepOpen' | 'rearm'>,
  ): Promise<Answer | undefined>
  /** Signs devices in; undefined = not one of its paths. */
  signIn(request: ClientRequest, path: string): Promise<Answer | undefined>
  /** Serves the catalog and the console; undefined = not a page. */
  pages(request: ClientRequest, path: string): Promise<Answer | undefined>
  /** A page for people who open an address that nothing serves. */
  notFound?(request: ClientRequest): Promise<Answer>
  /** For the operator's Prometheus, with the management token. */
  metrics(request: ClientRequest): Promise<Answer>
  /** undefined = no payment provider is configured, and then its path does not exist. */
  readonly payments: Pick<StripePayments, 'webhook'> | undefined
  readonly shutdown: Shutdown
  /** Why the gateway is too busy for a new generation. Probes are answered all the same. */
  overloaded?(running: number): Failure | undefined
  /** For `/readyz`: why a load balancer should send no requests here, although they would still be tried. */
  unreadiness(): Failure | undefined
  /** For probes: what is degraded although everything is served. */
  degraded(): string | undefined
  /** Logs a bug under the request id and returns what the caller is shown. */
  onDefect(error: unknown, id: RequestId): Failure
  /** The client's address; undefined = unknown. */
  addressOf(request: ClientRequest): string | undefined
  /** How long a connection may be silent within a request. */
  readonly idleSeconds: number
}

/** Leaving: requests are still accepted until a load balancer had time to notice. Draining: none are. */
export interface Shutdown {
  readonly phase: 'serving' | 'leaving' | 'draining'
}

interface HandlerSettings {
  readonly corsOrigins: readonly string[]
  /** Whether callers can have responses stored. */
  readonly storeResponses: boolean
}

export type Handler = (request: ClientRequest, socket: ConnectionControl) => Promise<Answer>

/** `path` is the result of `pathOf`. */
type PathHandler = (request: ClientRequest, path: string, socket: ConnectionControl) => Answer | Promise<Answer>

/** The names of the two probes on other gateways and platforms. */
const probePath = /^\/(health|livez?|liveness|ready|readiness|ping|status)(\/|$)/i
const fixedPaths = (operation: Operation) =>
  surfaceList.flatMap(({ paths }) => (paths?.[operation] === undefined ? [] : [`/v1${paths[operation]}`]))
const knownPaths = [
  ...fixedPaths('generate'),
  ...fixedPaths('countTokens'),
  ...fixedPaths('embed'),
  '/v1/models',
  '/v1/model/info',
]

export function createHandler(deps: HandlerDependencies): Handler {
  const { settings, shutdown } = deps
  const serve = createServe(deps)
  return async (request, socket) => {
    const path = pathOf(request.url)
    if (!isPlainPath(path)) return refuse(surfaceFor(request.headers, path), unplainPath(path))
    // While leaving, a proxy that reuses connections must not find one closed just as it sends the next request.
    const isLast = shutdown.phase !== 'serving'
    const cors = corsHeaders(request, path, settings.current.corsOrigins)
    const answer = cors && request.method === 'OPTIONS' ? preflight(request) : await serve(request, path, socket)
    if (cors) Object.assign(answer.headers, cors)
    return isLast ? withClose(answer) : answer
  }
}

/** Finds what serves a path. */
function createServe(deps: HandlerDependencies): PathHandler {
  const { settings, shutdown, addressOf } = deps
  const guard = async <Served>(surface: Dialect, run: () => Promise<Served>): Promise<Served | Answer> => {
    try {
      return await run()
    } catch (error) {
      const id = createId('req')
      return refuse(surface, deps.onDefect(error, id), id)
    }
  }
  const busy = (socket: ConnectionControl) =>
    shutdown.phase === 'draining' ? shuttingDown() : deps.overloaded?.(socket.pendingRequests)
  const openSocket = (request: ClientRequest, surface: Dialect, path: string, socket: ConnectionControl) => {
    if (!surface.turns || request.method !== 'GET' || request.body || !isHandshake(request.headers))
      return useHttp(surface)
    // A client that connects now would have to connect again in a moment.
    if (shutdown.phase === 'leaving') return withClose(refuse(surface, shuttingDown()))
    const control = { refusal: () => busy(socket), drop: () => socket.close() }
    return guard(surface, () => deps.openSocket(request, surface, hideKeys(path), control))
  }
  /** Handles POST for one operation of a surface. */
  const operationHandler =
    (operation: Operation, surface: Dialect): PathHandler =>
    (request, path, socket) => {
      if (request.method !== 'POST') {
        if (!isWebSocket(request)) return refuse(surface, wrongMethod(request.method, 'POST'))
        return operation === 'generate' ? openSocket(request, surface, path, socket) : useHttp(surface)
      }
      const refusal = busy(socket)
      if (refusal) return withClose(refuse(surface, refusal))
      // A key can stand in place of the model that some paths name.
      return deps[operation](request, surface, hideKeys(path), new PipelineConnection(request, socket, deps))
    }
  const routes: Record<string, PathHandler> = {
    '/healthz': () => plainText(200, 'ok'),
    '/readyz': () => readiness(shutdown.phase === 'serving' ? deps.unreadiness() : shuttingDown(), deps.degraded()),
  }
  for (const { dialect, paths } of surfaceList) {
    for (const operation of operations) {
      const path = paths?.[operation]
      if (path !== undefined) routes[path] = operationHandler(operation, dialect)
    }
  }
  const serveModelPath = (surface: Dialect, { encodedModel, operation }: ModelPath): PathHandler => {
    if (operation) return operationHandler(operation, surface)
    return (request, path) =>
      request.method === 'GET'
        ? guard(surface, () => deps.models(request, surface, addressOf(request), encodedModel))
        : refuse(surface, unknownPath(request, path, settings.current))
  }
  const serveOther = async (request: ClientRequest, sentPath: string, path: string, socket: ConnectionControl) => {
    for (const { dialect, matchPath } of surfaceList) {
      const match = matchPath?.(sentPath)
      if (match) return serveModelPath(dialect, match)(request, sentPath, socket)
    }
    if (sentPath === '/models' && isForPeople(request)) return withRequestId(toCatalog())
    const surface = surfaceFor(request.headers, sentPath)
    if (path === '/models' || path.startsWith('/models/') || path === '/model/info') {
      // The server leaves out the body of a HEAD response.
      if (request.method !== 'GET' && request.method !== 'HEAD')
        return refuse(surface, wrongMethod(request.method, 'GET'))
      if (path === '/model/info') return guard(surface, () => deps.modelInfo(request, surface, addressOf(request)))
      const id = path.slice('/models/'.length)
      return guard(surface, () => deps.models(request, surface, addressOf(request), id))
    }
    const { chat, responses, messages } = surfaces
    for (const [dialect, serve] of [
      [chat.dialect, deps.openaiBatches],
      [messages.dialect, deps.anthropicBatches],
    ] as const) {
      const connection = new PipelineConnection(request, socket, deps)
      const call = { request, surface: dialect, address: addressOf(request), connection }
      const batches = await guard(dialect, () => serve(call, path))
      if (batches) return batches
    }
    const stored = await guard(responses.dialect, () =>
      deps.storedResponses(request, responses.dialect, addressOf(request), path),
    )
    if (stored) return stored
    if (sentPath === spendPath && request.method === 'GET')
      return guard(messages.dialect, () => deps.spend(request, messages.dialect, addressOf(request)))
    if (isTelemetryPath(sentPath) && request.method === 'POST')
      return guard(messages.dialect, () =>
        deps.clientTelemetry(request, messages.dialect, addressOf(request), sentPath),
      )
    if (sentPath === managedSettingsPath && request.method === 'GET')
      return guard(messages.dialect, () => deps.managedSettings(request, messages.dialect, addressOf(request)))
    if (deps.payments && sentPath === webhookPath) return withRequestId(await deps.payments.webhook(request))
    if (sentPath === metricsPath) return withRequestId(await deps.metrics(request))
    // Some clients open their connection with these before they send a key.
    if (request.method === 'HEAD' && (path === '/' || path === '/api/hello')) return plainText(200)
    const signIn = await deps.signIn(request, sentPath)
    if (signIn) return signIn
    const page = await deps.pages(request, sentPath)
    if (page) return withRequestId(page)
    const managed = await deps.management(request, sentPath, new PipelineConnection(request, socket, deps))
    if (managed) return managed
    if (deps.notFound && isForPeople(request)) return withRequestId(await deps.notFound(request))
    return refuse(surface, unknownPath(request, sentPath, settings.current))
  }
  return (request, sentPath, socket) => {
    const path = publicPath(sentPath)
    const route = routes[path]
    return route ? route(request, sentPath, socket) : serveOther(request, sentPath, path, socket)
  }
}

function shuttingDown(): Failure {
  return new Failure('OVERLOADED', 'Tollgate is shutting down. Retry in a moment.', { retryAfterMs: 1000 })
}

/** A browser that opens an address; programs do not ask for HTML. */
function isForPeople({ method, headers }: ClientRequest): boolean {
  return method === 'GET' && headers.get('accept')?.includes('text/html') === true && !headers.has('authorization')
}

/** People who look for models find them in the catalog. */
function toCatalog(): Answer {
  return new Answer(303, { location: '/' })
}

/** Codex, set up for WebSockets, uses HTTP for the rest of its session after this answer. */
function useHttp(surface: Dialect): Answer {
  const { headers, body } = refuse(
    surface,
    invalidRequest('This is not a WebSocket handshake, or the path is served over HTTP only. Send a POST request.'),
  )
  return new Answer(426, headers, body)
}

/** A proxy may have removed the headers of the handshake. */
function isWebSocket({ headers }: ClientRequest): boolean {
  const isAsked = headers.get('openai-beta')?.includes('responses_websockets')
  return isAsked || headers.get('upgrade')?.toLowerCase() === 'websocket'
}

function readiness(unready: Failure | undefined, degraded: string | undefined): Answer {
  if (unready) return plainText(unready.status, unready.message)
  return plainText(200, degraded === undefined ? 'ready' : `ready; ${degraded}`)
}

/** For probes, which parse nothing. */
function plainText(status: number, line?: string): Answer {
  const headers = { ...requestIdHeaders(createId('req')), 'content-type': 'text/plain' }
  return new Answer(status, headers, line === undefined ? '' : `${line}\n`)
}

/** Pages, metrics and the webhook do not set a request id themselves. */
function withRequestId(answer: Answer): Answer {
  if (!('request-id' in answer.headers)) Object.assign(answer.headers, requestIdHeaders(createId('req')))
  return answer
}

function withClose(answer: Answer): Answer {
  answer.headers.connection = 'close'
  return answer
}

/** Only touches the socket when needed: most requests end long before their connection would count as idle. */
class PipelineConnection implements Connection {
  #isKept = false

  constructor(
    private readonly request: ClientRequest,
    private readonly socket: ConnectionControl,
    private readonly deps: Pick<HandlerDependencies, 'idleSeconds' | 'addressOf'>,
  ) {}

  keepOpen(): void {
    if (!this.#isKept) this.socket.timeout(0)
    this.#isKept = true
  }

  rearm(): void {
    if (this.#isKept) this.socket.timeout(this.deps.idleSeconds)
  }

  drop(): void {
    this.socket.close()
  }

  address(): string | undefined {
    return this.deps.addressOf(this.request)
  }
}

function unplainPath(path: string): Failure {
  const message = path.includes('//')
    ? 'The path contains an empty segment (`//`). Remove the extra slash; often it stands at the end of the base URL.'
    : `Tollgate does not normalise paths. Send this one without \`.\` and \`..\` segments, backslashes and \`#\`, in valid percent-encoded UTF-8, and with at most ${segmentsMax} segments.`
  return invalidRequest(message)
}

function unknownPath({ method }: ClientRequest, path: string, { storeResponses }: HandlerSettings): Failure {
  const named = hideKeys(path)
  const shown = named.length > 200 ? `${named.slice(0, 200)}…` : named
  if (publicPath(path).startsWith('/responses/') && !storeResponses) {
    const message = `${shown} is not served: responses are not stored here. Send the whole conversation to /v1/responses.`
    return new Failure('NOT_FOUND', message)
  }
  if (probePath.test(path)) {
    const message = `Nothing is served at ${method} ${shown}. Use /healthz to see whether the process runs, and /readyz whether it serves requests.`
    return new Failure('NOT_FOUND', message)
  }
  const near = nearestNames(path, knownPaths, 1)
  const hint = near.length > 0 ? ` Did you mean ${near[0]}?` : ` Served paths: ${knownPaths.join(', ')}.`
  return new Failure('NOT_FOUND', `Nothing is served at ${method} ${shown}.${hint}`)
}

// ── Calls from web pages of other origins (CORS) ──

// Off unless the operator names origins: a key in a page is a key for everyone who opens it. Only the public API answers; the
// management API and the console stay with their own origin.

/** Everything that clients of the API read. */
const exposed = '*, authorization, request-id, x-request-id, retry-after, x-should-retry'
/** A day; browsers use their own maximum. */
const preflightSeconds = '86400'

/** The headers for the answer; undefined = the page may not read it, or it is not a call from a page. */
function corsHeaders({ headers }: ClientRequest, path: string, origins: readonly string[]): AnswerHeaders | undefined {
  if (origins.length === 0) return undefined
  const origin = headers.get('origin')
  if (origin === null || !isPublicApi(path)) return undefined
  if (!origins.includes('*') && !origins.includes(origin)) return undefined
  return { 'access-control-allow-origin': origin, vary: 'origin', 'access-control-expose-headers': exposed }
}

const publicPaths = [...surfaceList.flatMap(({ paths }) => Object.values(paths ?? {})), '/models', '/model/info']

/** Paths below `/v1`, the same without it, and those that name a model. */
function isPublicApi(sentPath: string): boolean {
  if (sentPath.startsWith('/v1/') || surfaceList.some(({ matchPath }) => matchPath?.(sentPath))) return true
  const path = publicPath(sentPath)
  return publicPaths.some((each) => path === each || path.startsWith(`${each}/`))
}

/** What a browser asks for before a call. */
function preflight(request: ClientRequest): Answer {
  return new Answer(204, {
    'access-control-allow-methods': 'GET, POST, DELETE, OPTIONS',
    'access-control-allow-headers':
      request.headers.get('access-control-request-headers') ?? 'authorization, content-type',
    'access-control-max-age': preflightSeconds,
  })
}
