// The paths of a gateway at which a person signs in, as RFC 8628, 6749 and 7009 describe them, for tests of the client's side.
// Refresh tokens are valid once, without a grace, so that a client that sends one twice is found out.

export interface SignInServer extends AsyncDisposable {
  readonly url: string
  /** The forms it was sent, by path, in order. */
  readonly forms: readonly (readonly [path: string, form: Readonly<Record<string, string>>])[]
  readonly revoked: ReadonlySet<string>
  /** The errors of the next polls; then the sign-in is approved. */
  pollErrors: string[]
  /** Of access tokens issued from now on. */
  expiresInSeconds: number
  /** What calls for a token are answered with instead. */
  tokenFault: (() => Response) | undefined
  /** Awaited before a call for a token is served. */
  beforeToken: (() => Promise<void>) | undefined
  /** Access tokens that the API takes. */
  readonly accepted: Set<string>
  /** Whether a refresh token was used a second time. */
  isReused: boolean
}

/** `gateway`: serves the other paths, for those who send an accepted token, which then stands for its key. */
export function startSignInServer(gateway?: { readonly url: string; readonly key: string }): SignInServer {
  const forms: [string, Record<string, string>][] = []
  const revoked = new Set<string>()
  const valid = new Set<string>()
  let issued = 0
  const issue = () => {
    issued++
    valid.add(`refresh-${issued}`)
    self.accepted.add(`access-${issued}`)
    return Response.json({
      ...{ access_token: `access-${issued}`, token_type: 'Bearer', expires_in: self.expiresInSeconds },
      ...{ refresh_token: `refresh-${issued}`, email: 'ada@example.com', workspace: 'acme', project: 'web' },
    })
  }
  const oauthError = (error: string) => Response.json({ error, error_description: `It is ${error}.` }, { status: 400 })
  const token = async (form: Record<string, string>): Promise<Response> => {
    await self.beforeToken?.()
    if (self.tokenFault) return self.tokenFault()
    if (form.grant_type === 'refresh_token') {
      if (valid.delete(form.refresh_token ?? '')) return issue()
      self.isReused = true
      return oauthError('invalid_grant')
    }
    const error = self.pollErrors.shift()
    return error === undefined ? issue() : oauthError(error)
  }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, origin } = new URL(request.url)
      if (gateway && !pathname.startsWith('/oauth/')) return forward(request, gateway, self.accepted)
      const form = Object.fromEntries(new URLSearchParams(await request.text()))
      forms.push([pathname, form])
      if (pathname === '/oauth/token') return token(form)
      if (pathname === '/oauth/revoke') {
        revoked.add(form.token ?? '')
        self.accepted.delete(form.token ?? '')
        valid.delete(form.token ?? '')
        return new Response(null)
      }
      if (pathname !== '/oauth/device_authorization') return new Response('not here', { status: 404 })
      return Response.json({
        ...{ device_code: 'device-1', user_code: 'BCDF-GHJK', verification_uri: `${origin}/device` },
        // No wait between polls.
        ...{ verification_uri_complete: `${origin}/device?code=BCDF-GHJK`, expires_in: 600, interval: 0 },
      })
    },
  })
  const self: SignInServer = {
    ...{ url: `http://127.0.0.1:${server.port}`, forms, revoked, pollErrors: [], expiresInSeconds: 900 },
    ...{ tokenFault: undefined, beforeToken: undefined, isReused: false, accepted: new Set() },
    [Symbol.asyncDispose]: () => server.stop(true),
  }
  return self
}

async function forward(
  request: Request,
  gateway: { readonly url: string; readonly key: string },
  accepted: ReadonlySet<string>,
): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const headers = new Headers(request.headers)
  headers.delete('host')
  headers.set('accept-encoding', 'identity')
  for (const name of ['authorization', 'x-api-key', 'x-goog-api-key']) {
    const sent = headers.get(name)?.replace(/^bearer +/i, '')
    // The gateway itself refuses what is not accepted, in the words of each API.
    const key = accepted.has(sent ?? '') ? gateway.key : 'sk-tg-expired'
    if (sent !== undefined) headers.set(name, name === 'authorization' ? `Bearer ${key}` : key)
  }
  const body = request.body === null ? null : await request.arrayBuffer()
  const answer = await fetch(gateway.url + pathname + search, { method: request.method, headers, body })
  return new Response(answer.body, { status: answer.status, headers: answer.headers })
}
