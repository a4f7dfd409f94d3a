// A real OpenID Connect provider in this process. Everyone who comes to it signs in with the account that a test set.

import { createServer, type Server, type ServerResponse } from 'node:http'
// @ts-expect-error: the package has no types.
import Provider from 'oidc-provider'
import { Secret } from '../../src/kernel/secret.ts'
import type { OidcProvider } from '../../src/web/oidc.ts'

export interface IdentityProvider extends OidcProvider {
  /** The claims of the next sign-in. */
  account: Record<string, unknown> & { sub: string }
  /** Claims that are in the ID token beside the subject; userinfo has all of them. */
  inIdToken: readonly string[]
  /** Whether userinfo answers. */
  hasUserinfo: boolean
  /** How far its clock is ahead; below 0 = behind. */
  aheadMs: number
  /** The environment of a gateway that people sign in to here. */
  readonly env: Readonly<Record<string, string>>
  /** Replaces the signing key. */
  rotate(): Promise<void>
  /** Lets browsers be sent back to this gateway. */
  serve(gatewayUrl: string): Promise<void>
  stop(): Promise<void>
}

const clientSecret = 'a-client-secret-of-thirty-two-chars'

const keyNamed = async (kid: string) => {
  const { privateKey } = await crypto.subtle.generateKey(
    { name: 'RSASSA-PKCS1-v1_5', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
    true,
    ['sign', 'verify'],
  )
  const { key_ops: _uses, ext: _isExtractable, ...key } = await crypto.subtle.exportKey('jwk', privateKey)
  return { ...key, kid, use: 'sig', alg: 'RS256' }
}

export async function startIdentityProvider(redirectUri?: string): Promise<IdentityProvider> {
  const server: Server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const issuer = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
  let handle: (request: never, response: never) => void = () => {}
  server.on('request', (request, response) => {
    // Whoever called waits for the answer, so only the provider sees this clock.
    const { now } = Date
    Date.now = () => now() + self.aheadMs
    response.on('finish', () => {
      Date.now = now
    })
    handle(request as never, response as never)
  })
  let redirects = redirectUri === undefined ? [] : [redirectUri]
  const self: IdentityProvider = {
    issuer,
    clientId: 'gate',
    inIdToken: [],
    hasUserinfo: true,
    aheadMs: 0,
    clientSecret: new Secret(clientSecret),
    env: {
      TOLLGATE_OIDC_ISSUER: issuer,
      TOLLGATE_OIDC_CLIENT_ID: 'gate',
      TOLLGATE_OIDC_CLIENT_SECRET: clientSecret,
    },
    account: { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada' },
    async rotate() {
      const keys = [await keyNamed(`key-${Math.trunc(performance.now() * 1000)}`)]
      handle = createProvider(self, redirects, keys) as never
    },
    async serve(gatewayUrl) {
      redirects = [`${gatewayUrl}/console/oidc/callback`]
      await self.rotate()
    },
    async stop() {
      server.closeAllConnections()
      server.close()
    },
  }
  await self.rotate()
  return self
}

function createProvider(self: IdentityProvider, redirects: readonly string[], keys: object[]) {
  const provider = new Provider(self.issuer, {
    clients: [{ client_id: 'gate', client_secret: clientSecret, redirect_uris: redirects }],
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['name', 'groups', '_claim_names'],
      teams: ['teams'],
    },
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: async (use: 'id_token' | 'userinfo') => {
        const isIn = ([name]: [string, unknown]) => use === 'userinfo' || self.inIdToken.includes(name)
        return { ...Object.fromEntries(Object.entries(self.account).filter(isIn)), sub: id }
      },
    }),
    // Which claims are in the ID token is decided above.
    conformIdTokenClaims: false,
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    cookies: { keys: ['a cookie key for tests'] },
    jwks: { keys } as never,
    features: { devInteractions: { enabled: false } },
    ttl: { AuthorizationCode: 60, Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600 },
  } as never)
  const serve = provider.callback()
  return async (request: { url?: string }, response: never) => {
    if (request.url === '/me' && !self.hasUserinfo) return (response as ServerResponse).writeHead(503).end()
    if (!request.url?.startsWith('/interaction/')) return serve(request as never, response)
    // The person signs in and agrees.
    const grant = new provider.Grant({ accountId: self.account.sub, clientId: 'gate' })
    grant.addOIDCScope('openid email profile teams')
    const login = { accountId: self.account.sub }
    await provider.interactionFinished(request as never, response, { login, consent: { grantId: await grant.save() } })
  }
}

/** Follows the provider's redirects with its cookies, as a browser would, to the address of the gateway. */
export async function followToCallback(start: string, redirectUri: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let url = new URL(start)
  for (let hop = 0; hop < 10; hop++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const set of response.headers.getSetCookie()) {
      const [pair = ''] = set.split(';')
      cookies.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1))
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
    url = new URL(location, url)
    if (url.href.startsWith(redirectUri)) return url
  }
  throw new Error('too many redirects')
}
