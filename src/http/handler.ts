// Inbound requests: which path leads where. It authorises nothing and reads no body; what it does not know is a 404
// that says what was meant.

import type { Dialect } from '../dialects/dialect.ts'
import type { Generate } from '../generation/generate.ts'
import type { Connection } from '../generation/story.ts'
import { Failure } from '../kernel/failure.ts'
import { nearestNames } from '../kernel/nearest.ts'
import { refuse } from './failure-response.ts'
import { pathOf, publicPath } from './path.ts'

/** What the handler needs of the runtime's server. */
export interface SocketControl {
  timeout(request: Request, seconds: number): void
}

export interface HandlerDependencies {
  readonly chat: Dialect
  readonly messages: Dialect
  readonly generate: Generate
  readonly countTokens: Generate
  readonly models: {
    list(request: Request, surface: Dialect): Promise<Response>
    retrieve(request: Request, surface: Dialect, encodedId: string): Promise<Response>
  }
  /** Why new generations are refused, undefined while they are taken. */
  notReady(): Failure | undefined
  /** What the caller is told of a defect of ours; the details go to the log. */
  onDefect(error: unknown): Failure
  /** Seconds a silent connection may live between requests. */
  readonly idleSeconds: number
}

export type Handler = (request: Request, server: SocketControl) => Response | Promise<Response>

const knownPaths = ['/v1/chat/completions', '/v1/messages', '/v1/messages/count_tokens', '/v1/models']

export function createHandler(deps: HandlerDependencies): Handler {
  const { chat, messages } = deps
  const generation = (run: Generate, surface: Dialect) => async (request: Request, server: SocketControl) => {
    if (request.method !== 'POST') return refuse(surface, wrongMethod(request, 'POST'))
    const unready = deps.notReady()
    if (unready) return withClose(refuse(surface, unready))
    try {
      return await run(request, surface, pathOf(request.url), socketOf(request, server, deps.idleSeconds))
    } catch (error) {
      return refuse(surface, deps.onDefect(error))
    }
  }
  const routes: Record<string, Handler> = {
    '/chat/completions': generation(deps.generate, chat),
    '/messages': generation(deps.generate, messages),
    '/messages/count_tokens': generation(deps.countTokens, messages),
    '/healthz': () => new Response('ok\n', { headers: { 'content-type': 'text/plain' } }),
    '/readyz': () => readiness(deps.notReady()),
  }
  const modelsSurface = (request: Request): Dialect => (request.headers.has('anthropic-version') ? messages : chat)

  return (request, server) => {
    const path = publicPath(pathOf(request.url))
    const route = routes[path]
    if (route) return route(request, server)
    if (path === '/models' || path.startsWith('/models/')) {
      const surface = modelsSurface(request)
      if (request.method !== 'GET') return refuse(surface, wrongMethod(request, 'GET'))
      const id = path.slice('/models/'.length)
      return id === '' ? deps.models.list(request, surface) : deps.models.retrieve(request, surface, id)
    }
    // Clients warm up their connection with these before they send a key.
    if (request.method === 'HEAD' && (path === '/' || path === '/api/hello')) return new Response(null)
    return refuse(path.startsWith('/messages') ? messages : chat, unknownPath(request))
  }
}

function readiness(unready: Failure | undefined): Response {
  const headers = { 'content-type': 'text/plain' }
  return unready ? new Response(`${unready.message}\n`, { status: 503, headers }) : new Response('ready\n', { headers })
}

function withClose(response: Response): Response {
  response.headers.set('connection', 'close')
  return response
}

function socketOf(request: Request, server: SocketControl, idleSeconds: number): Connection {
  return {
    keepOpen: () => server.timeout(request, 0),
    rearm: () => server.timeout(request, idleSeconds),
    drop: () => server.timeout(request, 1),
  }
}

function wrongMethod(request: Request, allow: string): Failure {
  return new Failure('METHOD_NOT_ALLOWED', `${request.method} is not served here; use ${allow}.`, { allow })
}

function unknownPath(request: Request): Failure {
  const path = pathOf(request.url)
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path
  if (publicPath(path) === '/responses') {
    return new Failure('NOT_FOUND', `${shown} is not served: use /v1/chat/completions or /v1/messages.`)
  }
  const near = nearestNames(path, knownPaths, 1)
  const hint = near.length > 0 ? ` Did you mean ${near[0]}?` : ` Served are ${knownPaths.join(', ')}.`
  return new Failure('NOT_FOUND', `Nothing is served at ${request.method} ${shown}.${hint}`)
}
