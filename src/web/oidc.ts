// Signing in with an identity provider by OpenID Connect: authorization code with PKCE, state and nonce. The protocol is
// openid-client's. Discovery and signing keys are read again for each sign-in, so that a provider that was away or
// rotated its keys needs no restart. What a sign-in needs to remember is in a cookie of the browser that started it.

import * as client from 'openid-client'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { KeyId, PersonId } from '../kernel/ids.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Database } from '../store/database.ts'
import { type ClaimRules, isIncomplete, type SignedUp, signInByClaims } from '../tenancy/claims.ts'

export interface OidcProvider {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: Secret | undefined
}

export interface OidcDependencies {
  readonly database: Database
  readonly clock: Clock
  readonly provider: OidcProvider
  rules(): ClaimRules
  /** What is requested from the provider. */
  scopes(): readonly string[]
  /** Gives the workspace of someone who signed up its opening credit. */
  onSignUp(signedUp: SignedUp): Promise<void>
  /** Why a sign-in was refused, for the audit log. */
  onRefused(reason: 'oidc'): void
  /** Someone's roles may have changed, or they lost a role and with it this key of their own. */
  onAccessChange(id: KeyId | PersonId): void
  /** The provider's error, for the log. */
  onFault(error: unknown): void
}

export interface Oidc {
  /** Where to send the browser, and what it has to bring back. */
  start(redirectUri: string): Promise<{ readonly url: string; readonly memory: string } | Failure>
  /** `query`: of the address that the provider sent the browser to. */
  finish(query: URLSearchParams, memory: string | undefined, redirectUri: string): Promise<PersonId | Failure>
}

const timeoutSeconds = 10
/** Clocks of the two servers may differ by this much. */
const toleranceSeconds = 60

export function createOidc(deps: OidcDependencies): Oidc {
  const { database, clock, provider } = deps

  const discover = async (): Promise<client.Configuration> => {
    const issuer = new URL(provider.issuer)
    const isPlain = issuer.protocol === 'http:'
    const metadata = { [client.clockTolerance]: toleranceSeconds }
    const config = await client.discovery(issuer, provider.clientId, metadata, authenticationOf(provider), {
      timeout: timeoutSeconds,
      ...(isPlain && { execute: [client.allowInsecureRequests] }),
    })
    // The signature of the ID token is checked, although it comes from the provider directly.
    client.enableNonRepudiationChecks(config)
    return config
  }

  /** Adds what only userinfo says: some providers put no more than the subject into the ID token. */
  const complete = async (config: client.Configuration, stated: client.IDToken, accessToken: string) => {
    if (config.serverMetadata().userinfo_endpoint === undefined) return stated
    try {
      const { email, email_verified, ...more } = await client.fetchUserInfo(config, accessToken, stated.sub)
      // That this address is verified says nothing about another one in the ID token.
      return { ...(stated.email === undefined && { email, email_verified }), ...more, ...stated }
    } catch (thrown) {
      deps.onFault(thrown)
      return noUserinfo()
    }
  }

  return {
    async start(redirectUri) {
      try {
        const config = await discover()
        const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()]
        const url = client.buildAuthorizationUrl(config, {
          redirect_uri: redirectUri,
          scope: deps.scopes().join(' '),
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
          state,
          nonce,
        })
        return { url: url.href, memory: `${state}.${nonce}.${verifier}` }
      } catch (thrown) {
        deps.onFault(thrown)
        return unreachable()
      }
    },
    async finish(query, memory, redirectUri) {
      const [expectedState, expectedNonce, pkceCodeVerifier] = memory?.split('.') ?? []
      if (expectedState === undefined || expectedNonce === undefined || pkceCodeVerifier === undefined) {
        deps.onRefused('oidc')
        return wrongAnswer()
      }
      if (!isAnswerTo(query, memory)) {
        deps.onRefused('oidc')
        return overtaken()
      }
      const checks = { expectedState, expectedNonce, pkceCodeVerifier, idTokenExpected: true }
      const current = new URL(redirectUri)
      current.search = query.toString()
      const config = await discover().catch((thrown) => {
        deps.onFault(thrown)
        return undefined
      })
      if (!config) return unreachable()
      try {
        const tokens = await client.authorizationCodeGrant(config, current, checks)
        const stated = tokens.claims()
        if (!stated) return wrongAnswer()
        const rules = deps.rules()
        const claims = isIncomplete(stated, rules) ? await complete(config, stated, tokens.access_token) : stated
        if (claims instanceof Failure) {
          deps.onRefused('oidc')
          return claims
        }
        const { outcome, revokedKeys, personId } = await signInByClaims(database, claims, rules, clock.now())
        for (const id of revokedKeys) deps.onAccessChange(id)
        if (personId !== undefined) deps.onAccessChange(personId)
        if (outcome instanceof Failure) {
          deps.onRefused('oidc')
          return outcome
        }
        if (outcome.workspaceId !== undefined) await deps.onSignUp(outcome)
        return outcome.personId
      } catch (thrown) {
        deps.onFault(thrown)
        deps.onRefused('oidc')
        return thrown instanceof client.AuthorizationResponseError ? denied(thrown.error) : wrongAnswer()
      }
    },
  }
}

/** Whether the provider answers the sign-in that this browser started last. */
export function isAnswerTo(query: URLSearchParams, memory: string | undefined): boolean {
  return memory !== undefined && query.get('state') === memory.split('.')[0]
}

/** In the way that the provider supports; by the specification that is Basic if it names none. */
function authenticationOf({ clientSecret }: OidcProvider): client.ClientAuth {
  if (!clientSecret) return client.None()
  const [basic, post] = [
    client.ClientSecretBasic(clientSecret.reveal()),
    client.ClientSecretPost(clientSecret.reveal()),
  ]
  return (server, ...rest) => {
    const supported = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    return (supported.includes('client_secret_basic') ? basic : post)(server, ...rest)
  }
}

function unreachable(): Failure {
  const message = 'The identity provider does not answer. Try again in a minute, or sign in with a password.'
  return new Failure('OVERLOADED', message)
}

function noUserinfo(): Failure {
  const message = 'The identity provider does not answer when asked for your e-mail address and your groups (userinfo).'
  return new Failure('OVERLOADED', `${message} Try again in a minute, or ask your administrator.`)
}

function overtaken(): Failure {
  const message = 'This sign-in is not valid any more: another one was started later, perhaps in another tab.'
  return new Failure('UNAUTHORIZED', `${message} Finish that one, or sign in again.`)
}

/** `error`: as the provider names it. */
function denied(error: string): Failure {
  if (error === 'access_denied') {
    const message = 'The sign-in was cancelled, or the identity provider does not let you in here.'
    return new Failure('FORBIDDEN', `${message} Sign in again, or ask your administrator.`)
  }
  const named = /^[a-z_]{1,50}$/.test(error) ? ` (${error})` : ''
  return new Failure('FORBIDDEN', `The identity provider refused the sign-in${named}. Ask your administrator.`)
}

function wrongAnswer(): Failure {
  const message = 'This sign-in is not valid: it was used before, took too long, or was started in another browser.'
  return new Failure('UNAUTHORIZED', `${message} Sign in again.`)
}
