// Whether a request that changes something comes from a page of this gateway. A cookie alone does not show that: any
// site can make a browser send a form here.

import { Failure } from '../kernel/failure.ts'

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Rule W2: unsafe methods need a same-origin Sec-Fetch-Site or Origin, and JSON, which no form can send. */
export function refuseForeign(request: Request): Failure | undefined {
  if (safeMethods.has(request.method)) return undefined
  if (!isSameOrigin(request.headers)) {
    return new Failure('FORBIDDEN', 'A session of the console only takes changes from its own pages.')
  }
  const type = request.headers.get('content-type')
  const isJson = type === null ? !hasBody(request.headers) : /^application\/json\s*(?:;|$)/i.test(type)
  return isJson ? undefined : new Failure('UNSUPPORTED_MEDIA_TYPE', 'Send JSON, with `Content-Type: application/json`.')
}

/** The browser's own word first: it is right also behind a proxy that changes Host. */
function isSameOrigin(headers: Headers): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  const origin = URL.parse(headers.get('origin') ?? '')
  return origin !== null && origin.host !== '' && origin.host === headers.get('host')
}

function hasBody(headers: Headers): boolean {
  return headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) > 0
}
