// Access tokens of Google service accounts: asked for once, shared by all calls, renewed before they end. A token that
// cannot be had fails the call before anything is sent, so that another route is tried; whether the credential or whoever
// gives out tokens is to blame is told apart, or one bad key would count against everybody's.

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Clock } from '../../kernel/clock.ts'
import type { Secret } from '../../kernel/secret.ts'
import { readResponseBody } from '../../wire/read-body.ts'
import { parseServiceAccount, type ServiceAccount, signClaim, usualTokenUrl } from './service-account.ts'

export interface AccessTokensInput {
  readonly clock: Clock
  /** It alone may be the path of a file and may name where tokens are had: its own, and those of every workspace. */
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

/** Tokens of a kilobyte or two: 20 MB. */
const heldMax = 10_000

export class AccessTokens {
  // By what a credential says, not by the object: a workspace's own is opened anew every few seconds.
  readonly #held = new Map<string, Held>()
  readonly #running = new Map<string, Promise<Held>>()
  readonly #names = new WeakMap<Secret, string>()

  constructor(private readonly input: AccessTokensInput) {}

  async tokenFor(credential: Secret): Promise<string> {
    const name = this.#nameOf(credential)
    const held = this.#held.get(name)
    if (held && this.input.clock.now() < held.renewAtMs) return held.token
    // Calls that come together share one exchange; none of them may end it for the others.
    const running = this.#running.get(name) ?? this.#renew(name, credential)
    this.#running.set(name, running)
    return (await running).token
  }

  /** Only the one that was refused: of many calls that hear it, the last must not drop what the first has renewed. */
  drop(credential: Secret, isRefused: (token: string) => boolean): void {
    const name = this.#nameOf(credential)
    const held = this.#held.get(name)
    if (held && isRefused(held.token)) this.#held.delete(name)
  }

  /** The operator's and a workspace's are two, also where they are the same text: tokens may be had elsewhere. */
  #nameOf(credential: Secret): string {
    const known = this.#names.get(credential)
    if (known !== undefined) return known
    const digest = createHash('sha256').update(credential.reveal()).digest('base64')
    const name = `${credential === this.input.operator ? 'operator' : 'own'} ${digest}`
    this.#names.set(credential, name)
    return name
  }

  async #renew(name: string, credential: Secret): Promise<Held> {
    try {
      const held = await this.#exchange(await this.#accountOf(credential))
      this.#hold(name, held)
      return held
    } finally {
      this.#running.delete(name)
    }
  }

  /** The first is the one that was renewed longest ago. */
  #hold(name: string, held: Held): void {
    const now = this.input.clock.now()
    this.#held.delete(name)
    this.#held.set(name, held)
    for (const [oldest, { renewAtMs }] of this.#held) {
      if (oldest === name || (this.#held.size <= heldMax && now < renewAtMs)) break
      this.#held.delete(oldest)
    }
  }

  async #accountOf(credential: Secret): Promise<ServiceAccount> {
    if (credential === this.input.operator) return await this.#operatorsAccount(credential)
    const account = parseServiceAccount(credential.reveal())
    if (!account) throw notAnAccount()
    return { ...account, tokenUrl: await this.#issuer() }
  }

  async #operatorsAccount(credential: Secret): Promise<ServiceAccount> {
    const text = credential.reveal()
    const account = parseServiceAccount(text.startsWith('{') ? text : await readKeyFile(text))
    if (!account) throw notAnAccount()
    return account
  }

  /** What a workspace's file says of it does not count: it could name any server that can be reached from here. */
  async #issuer(): Promise<string> {
    const { operator } = this.input
    if (!operator) return usualTokenUrl
    return await this.#operatorsAccount(operator).then(
      ({ tokenUrl }) => tokenUrl,
      // The operator's own calls tell that it is of no use; those of workspaces need nothing of it.
      () => usualTokenUrl,
    )
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

function notAnAccount(): Error {
  return noToken('the credential is no key of a service account')
}

function noToken(message: string): Error {
  return coded(message, 'NO_ACCESS_TOKEN')
}

/** As what the network says: nothing was sent, so that the next route is safe to try. */
function coded(message: string, code: 'NO_ACCESS_TOKEN' | 'NO_TOKEN_ISSUER'): Error {
  return Object.assign(new Error(message), { code })
}
