// Tokens that a credential is exchanged for. Each is requested once, shared by all calls, and renewed before it ends, while
// calls go on with the one that still works. If none can be had, a call fails before anything is sent, so that another route
// is tried. Errors distinguish a bad credential from an unavailable issuer, so that one bad key does not count against
// everyone, and never repeat any part of a credential.

import { createHash } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import { parseRecord } from '../dialects/canonical/json.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Secret } from '../kernel/secret.ts'
import { readResponseBody } from '../wire/read-body.ts'

export interface IssuedToken {
  readonly token: string
  readonly endsAtMs: number
}

export interface AccessTokensInput {
  readonly clock: Clock
  readonly operator: Secret | undefined
  /** Rejects with `noToken` or `noIssuer`. */
  exchange(credential: Secret): Promise<IssuedToken>
}

interface Held {
  readonly token: string
  /** No call begins with it from then on. */
  readonly usableUntilMs: number
  renewAtMs: number
}

/** Renew this long before a token ends: an issuer may be away for minutes. */
const marginMs = 5 * 60_000
/** A call that takes a token may need it for this long. */
const callMs = 30_000
/** Between two renewals of a token that still works. */
const retryMs = 30_000

/** Tokens of a kilobyte or two: 20 MB. */
const heldMax = 10_000

export class AccessTokens {
  // By content, not by object: a workspace's credential is decrypted again every few seconds.
  readonly #held = new Map<string, Held>()
  readonly #running = new Map<string, Promise<Held>>()
  readonly #names = new WeakMap<Secret, string>()

  constructor(private readonly input: AccessTokensInput) {}

  async tokenFor(credential: Secret): Promise<string> {
    const name = this.#nameOf(credential)
    const held = this.#held.get(name)
    const now = this.input.clock.now()
    if (held && now < held.renewAtMs) return held.token
    // Concurrent calls share one exchange, so none of them may abort it.
    const renewing = this.#running.get(name) ?? this.#renew(name, credential)
    this.#running.set(name, renewing)
    if (!held || now >= held.usableUntilMs) return (await renewing).token
    renewing.catch(() => {})
    return held.token
  }

  /** Drops only the refused token: of many refused calls, the last must not drop what the first has renewed. */
  drop(credential: Secret, isRefused: (token: string) => boolean): void {
    const name = this.#nameOf(credential)
    const held = this.#held.get(name)
    if (held && isRefused(held.token)) this.#held.delete(name)
  }

  /** The operator's credential and a workspace's differ even with equal text, because they may be exchanged elsewhere. */
  #nameOf(credential: Secret): string {
    const known = this.#names.get(credential)
    if (known !== undefined) return known
    const digest = createHash('sha256').update(credential.reveal()).digest('base64')
    const name = `${credential === this.input.operator ? 'operator' : 'own'} ${digest}`
    this.#names.set(credential, name)
    return name
  }

  async #renew(name: string, credential: Secret): Promise<Held> {
    const { clock, exchange } = this.input
    try {
      const { token, endsAtMs } = await exchange(credential)
      const now = clock.now()
      // An issuer may give the same token until shortly before its end.
      const renewAtMs = Math.min(endsAtMs - callMs, Math.max(endsAtMs - marginMs, now + retryMs))
      const held = { token, usableUntilMs: endsAtMs - callMs, renewAtMs }
      this.#hold(name, held, now)
      return held
    } catch (thrown) {
      const held = this.#held.get(name)
      if (held) held.renewAtMs = clock.now() + retryMs
      throw thrown
    } finally {
      this.#running.delete(name)
    }
  }

  /** Removes expired tokens and, above the limit, the one renewed longest ago. */
  #hold(name: string, held: Held, now: number): void {
    this.#held.delete(name)
    this.#held.set(name, held)
    for (const [oldest, { usableUntilMs }] of this.#held) {
      if (oldest === name || (this.#held.size <= heldMax && now < usableUntilMs)) break
      this.#held.delete(oldest)
    }
  }
}

/** The credential is refused or cannot be used. */
export function noToken(message: string): Error {
  return coded(message, refusedCode)
}

/** The issuer cannot be reached, is too busy or broken: says nothing about the credential. */
export function noIssuer(message: string): Error {
  return coded(message, awayCode)
}

/** Why a call has no token; undefined = it failed for another reason. */
export function tokenFault(thrown: unknown): string | undefined {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  return code === refusedCode || code === awayCode ? (thrown as Error).message : undefined
}

const refusedCode = 'NO_ACCESS_TOKEN'
const awayCode = 'NO_TOKEN_ISSUER'

/** Coded like a network error: nothing was sent, so the next route is safe to try. */
function coded(message: string, code: typeof refusedCode | typeof awayCode): Error {
  return Object.assign(new Error(message), { code })
}

// Asking issuers.

export interface IssuerRequest {
  readonly url: string
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as a form, or as JSON if it is text. */
  readonly body?: Readonly<Record<string, string>> | string
  /** For errors: "the token service of AWS". */
  readonly issuer: string
  /** On the machine's own network: never through a proxy, and answered at once or not at all. */
  readonly isLocal?: true
}

const answerBytesMax = 64 * 1024
const publicMs = 10_000
const localMs = 3000
/** The issuer was too busy and did not check the credential. */
const hurriedStatuses: ReadonlySet<number> = new Set([408, 429])

/** The body of a 200. Rejects with `noToken` if the issuer refuses, with `noIssuer` if it does not answer or is broken. */
export async function askIssuer(request: IssuerRequest): Promise<string> {
  const { issuer } = request
  const answer = await (request.isLocal ? askDirectly(request) : askByFetch(request)).catch(() => undefined)
  if (answer === undefined) throw noIssuer(`${issuer} does not answer`)
  const { status, text } = answer
  if (status === 200) return text
  if (status >= 400 && status < 500 && !hurriedStatuses.has(status)) throw noToken(`${issuer} refuses it (${status})`)
  throw noIssuer(`${issuer} answers with ${status}`)
}

/** Rejects with `noIssuer` if the body is no JSON object. */
export async function askForJson(request: IssuerRequest): Promise<Readonly<Record<string, unknown>>> {
  const answer = parseRecord(await askIssuer(request))
  if (!answer) throw noIssuer(`${request.issuer} answers with something else than JSON`)
  return answer
}

interface IssuerAnswer {
  readonly status: number
  readonly text: string
}

async function askByFetch({ url, method = 'GET', headers, body }: IssuerRequest): Promise<IssuerAnswer> {
  const sent = typeof body === 'object' ? new URLSearchParams(body) : body
  const response = await fetch(url, {
    method,
    ...(headers && { headers }),
    ...(sent !== undefined && { body: sent }),
    redirect: 'manual',
    signal: AbortSignal.timeout(publicMs),
  })
  const read = await readResponseBody(response, answerBytesMax)
  if (read === 'too-large') throw new Error('too large')
  return { status: response.status, text: new TextDecoder().decode(read) }
}

/** `fetch` would use the proxy of the environment, which does not know this machine's identity. */
async function askDirectly({ url, method = 'GET', headers = {} }: IssuerRequest): Promise<IssuerAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<IssuerAnswer>()
  const send = url.startsWith('https:') ? https.request : http.request
  const request = send(url, { method, headers: { ...headers }, signal: AbortSignal.timeout(localMs) }, (response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (piece: string) => {
      text += piece
      if (text.length > answerBytesMax) request.destroy(new Error('too large'))
    })
    response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    response.on('error', reject)
  })
  request.on('error', reject)
  request.end()
  return await promise
}
