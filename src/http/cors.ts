// Calls from web pages of other origins (CORS). Off unless the operator names origins: a key in a page is a key for everyone
// who opens it. Only the public API answers; the management API and the console stay with their own origin.

import { pathOf, publicPath } from './request.ts'

/** Everything that clients of the API read. */
const exposed = '*, authorization, request-id, x-request-id, retry-after, x-should-retry'
/** A day; browsers use their own maximum. */
const preflightSeconds = '86400'

/** The headers for the answer; undefined = the page may not read it, or it is not a call from a page. */
function corsHeaders(request: Request, origins: readonly string[]): Record<string, string> | undefined {
  const origin = request.headers.get('origin')
  if (origin === null || !isPublicApi(request)) return undefined
  if (!origins.includes('*') && !origins.includes(origin)) return undefined
  return { 'access-control-allow-origin': origin, vary: 'origin', 'access-control-expose-headers': exposed }
}

/** Paths with `/v1`, and the same without it. */
function isPublicApi({ url }: Request): boolean {
  const path = pathOf(url)
  return (
    path.startsWith('/v1/') ||
    /^\/(chat\/completions|messages|responses|models|model\/info)(\/|$)/.test(publicPath(path))
  )
}

/** Answers preflights, and lets pages of the allowed origins read answers. Costs nothing while there are no origins. */
export function withCors<Server>(
  handler: (request: Request, server: Server) => Response | Promise<Response>,
  origins: () => readonly string[],
): (request: Request, server: Server) => Response | Promise<Response> {
  return (request, server) => {
    const allowed = origins()
    const headers = allowed.length === 0 ? undefined : corsHeaders(request, allowed)
    if (!headers) return handler(request, server)
    if (request.method === 'OPTIONS') return preflight(request, headers)
    return allow(handler(request, server), headers)
  }
}

function preflight(request: Request, headers: Record<string, string>): Response {
  const asked = request.headers.get('access-control-request-headers')
  return new Response(null, {
    status: 204,
    headers: {
      ...headers,
      'access-control-allow-methods': 'GET, POST, OPTIONS',
      'access-control-allow-headers': asked ?? 'authorization, content-type',
      'access-control-max-age': preflightSeconds,
    },
  })
}

async function allow(answer: Response | Promise<Response>, headers: Record<string, string>): Promise<Response> {
  const response = await answer
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
  return response
}
