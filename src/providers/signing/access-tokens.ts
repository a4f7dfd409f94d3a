// Access tokens of Google service accounts: asked for once, shared by all calls, renewed before they end. A token that
// cannot be had fails the call before anything is sent, so that another route is tried; whether the credential or whoever
// gives out tokens is to blame is told apart, or one bad key would count against everybody's.

import { readFile } from 'node:fs/promises'
import type { Clock } from '../../kernel/clock.ts'
import type { Secret } from '../../kernel/secret.ts'
import { readResponseBody } from '../../wire/read-body.ts'
import { parseServiceAccount, type ServiceAccount, signClaim, usualTokenUrl } from './service-account.ts'

export interface AccessTokensInput {
  readonly clock: Clock
  /** The operator's own credential may be the path of a file, and may name where tokens are had; a tenant's may not. */
  readonly operator: Secret | undefined
}

interface Held {
  readonly token: string
  readonly renewAtMs: number
}

/** Before its end, so that no call is sent with a token that ends on the way. */
const marginMs = 5 * 60 * 1000
const answerBytesMax = 64 * 1024
const exchangeMs = 10_000
/** By these an issuer has too little time; the claim was not looked at. */
const hurriedStatuses: ReadonlySet<number> = new Set([408, 429])

export class AccessTokens {
  readonly #held = new WeakMap<Secret, Held>()
  readonly #running = new WeakMap<Secret, Promise<Held>>()

  constructor(private readonly input: AccessTokensInput) {}

  async tokenFor(credential: Secret): Promise<string> {
    const held = this.#held.get(credential)
    if (held && this.input.clock.now() < held.renewAtMs) return held.token
    // Calls that come together share one exchange; none of them may end it for the others.
    const running = this.#running.get(credential) ?? this.#renew(credential)
    this.#running.set(credential, running)
    return (await running).token
  }

  /** Only the one that was refused: of many calls that hear it, the last must not drop what the first has renewed. */
  drop(credential: Secret, isRefused: (token: string) => boolean): void {
    const held = this.#held.get(credential)
    if (held && isRefused(held.token)) this.#held.delete(credential)
  }

  async #renew(credential: Secret): Promise<Held> {
    try {
      const held = await this.#exchange(await this.#accountOf(credential))
      this.#held.set(credential, held)
      return held
    } finally {
      this.#running.delete(credential)
    }
  }

  async #accountOf(credential: Secret): Promise<ServiceAccount> {
    const text = credential.reveal()
    const isOperators = credential === this.input.operator
    const account = parseServiceAccount(isOperators && !text.startsWith('{') ? await readKeyFile(text) : text)
    if (!account) throw noToken('the credential is no key of a service account')
    return isOperators ? account : { ...account, tokenUrl: usualTokenUrl }
  }

  async #exchange(account: ServiceAccount): Promise<Held> {
    const now = this.input.clock.now()
    let assertion: string
    try {
      assertion = signClaim(account, Math.floor(now / 1000))
    } catch {
      throw noToken('the private key of the service account cannot be used')
    }
    const { access_token: token, expires_in: seconds } = await askForToken(account.tokenUrl, assertion)
    if (typeof token !== 'string') throw noToken('no access token was given')
    const lifeMs = (typeof seconds === 'number' ? seconds : 0) * 1000
    return { token, renewAtMs: now + Math.max(lifeMs - marginMs, 0) }
  }
}

/** What the issuer says of a token it gives; nothing where it refuses the claim. */
async function askForToken(url: string, assertion: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }),
      redirect: 'manual',
      signal: AbortSignal.timeout(exchangeMs),
    })
    const body = await readResponseBody(response, answerBytesMax)
    if (response.status >= 400 && response.status < 500 && !hurriedStatuses.has(response.status)) return {}
    if (response.status !== 200 || body === 'too-large') throw new Error('no answer of an issuer')
    const answer: unknown = JSON.parse(new TextDecoder().decode(body))
    return typeof answer === 'object' && answer !== null ? { ...answer } : {}
  } catch {
    // Unreachable, cut off, too slow, failing, or not JSON: none of it says anything about the claim.
    throw coded('access tokens cannot be had now', 'NO_TOKEN_ISSUER')
  }
}

async function readKeyFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    throw noToken('the key file of the service account cannot be read')
  }
}

function noToken(message: string): Error {
  return coded(message, 'NO_ACCESS_TOKEN')
}

/** As what the network says: nothing was sent, so that the next route is safe to try. */
function coded(message: string, code: 'NO_ACCESS_TOKEN' | 'NO_TOKEN_ISSUER'): Error {
  return Object.assign(new Error(message), { code })
}
