// Signs a person in at a gateway by device authorization (RFC 8628), and refreshes and revokes tokens (RFC 6749, RFC 7009).
// It sends tokens and codes only to the gateway's own origin, follows no redirect, and stores nothing.

import { lookup } from 'node:dns/promises'
import { hostname } from 'node:os'
import { z } from 'zod'
import { isInRange, parseIpAddress, parseIpRange } from '../kernel/ip-range.ts'
import type { ConnectModel } from './connect-clients.ts'
import { exitCodes, Refusal, usageRefusal } from './refusal.ts'
import { cleanText } from './values.ts'

const textMax = 10_000
const text = z.string().min(1).max(textMax)
const seconds = z.number().nonnegative()

const deviceGrantSchema = z.object({
  device_code: text,
  user_code: text,
  verification_uri: text,
  verification_uri_complete: text.optional(),
  expires_in: seconds,
  interval: seconds.default(5),
  login_notice: text.optional(),
})

const tokensSchema = z.object({
  access_token: text.regex(/^[\x21-\x7e]+$/),
  expires_in: seconds,
  refresh_token: text,
  email: text,
  // Names, which only Tollgate sends.
  workspace: text.optional(),
  project: text.optional(),
})

const errorSchema = z.object({ error: text, error_description: z.string().max(textMax).optional() })

export type DeviceGrant = z.output<typeof deviceGrantSchema>
export type Tokens = z.output<typeof tokensSchema>

/** The gateway refused: an error code of OAuth. */
export interface OAuthError {
  readonly error: string
  readonly description: string | undefined
}

/** No answer, or none of an OAuth server: trouble that may pass. */
export interface NoAnswer {
  readonly trouble: string
}

type Outcome<Value> = Value | OAuthError | NoAnswer

const timeoutMs = 10_000

/** The root of a gateway as people type it: with or without a scheme, a slash at the end or `/v1`. */
export function readGatewayUrl(typed: string): string {
  const url = URL.parse(/^[a-z]+:\/\//i.test(typed) ? typed : `https://${typed}`)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username + url.password + url.search + url.hash !== '') {
    throw usageRefusal(`"${typed}" is not the address of a gateway.`, 'tollgate login https://gate.example.com')
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}`
}

/** Plain http, to another machine: everyone on the way could read the tokens. */
export function isExposed(gateway: string): boolean {
  const { protocol, hostname: host } = new URL(gateway)
  return protocol === 'http:' && host !== 'localhost' && host !== '[::1]' && !/^127\.[0-9.]+$/.test(host)
}

/** https://www.iana.org/assignments/iana-ipv4-special-registry, and the one for IPv6: private, shared, link-local, loopback. */
const privateRanges = [
  ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16', '127.0.0.0/8'],
  ...['fc00::/7', 'fe80::/10', '::1'],
].flatMap((text) => parseIpRange(text) ?? [])

/** Whether every address of the gateway's name is private; one public address is enough for Claude Code to refuse it. */
export async function hasPrivateAddress(gateway: string): Promise<boolean> {
  const host = new URL(gateway).hostname.replace(/^\[|\]$/g, '')
  try {
    const found = await lookup(host, { all: true })
    const addresses = found.map(({ address }) => parseIpAddress(address))
    return addresses.every((address) => address && privateRanges.some((range) => isInRange(range, address)))
  } catch {
    return false
  }
}

export async function startDeviceGrant(gateway: string): Promise<DeviceGrant> {
  const form = { client_id: 'tollgate', device_name: hostname() }
  const outcome = await post(`${gateway}/oauth/device_authorization`, form, deviceGrantSchema)
  if ('device_code' in outcome) return outcome
  const what = `you cannot sign in to ${gateway}: ${reasonOf(outcome)}.`
  throw new Refusal(exitCodes.failed, what, `tollgate login https://… with the address of your gateway`)
}

/** Asks once whether the person has decided. */
export function redeemDeviceGrant(gateway: string, { device_code }: DeviceGrant): Promise<Outcome<Tokens>> {
  return post(
    `${gateway}/oauth/token`,
    { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code },
    tokensSchema,
  )
}

interface Waiting {
  ask(): Promise<Outcome<Tokens>>
  wait(milliseconds: number): Promise<void>
  /** Milliseconds, monotonic. */
  now(): number
}

const slowDownSeconds = 5

/** Asks at the given interval until the person has approved. Throws if they denied it or it took too long. */
export async function untilApproved(grant: DeviceGrant, { ask, wait, now }: Waiting): Promise<Tokens> {
  const endMs = now() + grant.expires_in * 1000
  let { interval } = grant
  for (;;) {
    await wait(interval * 1000)
    const outcome = await ask()
    if ('access_token' in outcome) return outcome
    if ('error' in outcome) {
      if (outcome.error === 'access_denied') throw failed('the sign-in was denied in the browser.')
      if (outcome.error === 'expired_token') throw expired()
      // RFC 8628 §3.5.
      if (outcome.error === 'slow_down') interval += slowDownSeconds
      else if (outcome.error !== 'authorization_pending') throw failed(`the sign-in failed: ${reasonOf(outcome)}.`)
    }
    if (now() >= endMs) throw expired()
  }
}

function expired(): Refusal {
  return failed('nobody approved the sign-in in time.')
}

function failed(message: string): Refusal {
  return new Refusal(exitCodes.failed, message, 'tollgate login again')
}

/** `withinMs`: for a helper whose caller does not wait long. */
export function refreshTokens(gateway: string, refreshToken: string, withinMs: number): Promise<Outcome<Tokens>> {
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken }
  return post(`${gateway}/oauth/token`, form, tokensSchema, withinMs)
}

/** Returns why the tokens may still be valid at the gateway; undefined = both are revoked. */
export async function revokeTokens(gateway: string, accessToken: string, refreshToken: string) {
  const forms = [{ token: accessToken }, { token: refreshToken, token_type_hint: 'refresh_token' }]
  const headers = { authorization: `Bearer ${accessToken}` }
  const answers = await Promise.all(
    forms.map((form) =>
      request(`${gateway}/oauth/revoke`, { method: 'POST', body: new URLSearchParams(form), headers }),
    ),
  )
  for (const answer of answers) {
    if ('trouble' in answer) return answer.trouble
    // An access token that has expired cannot be revoked any more, and need not be.
    if (answer.status >= 400 && answer.status !== 401) return `it answered ${answer.status}`
  }
  return undefined
}

const modelsSchema = z.object({
  data: z.array(
    z.object({
      id: text,
      name: z.string().optional(),
      context_length: z.number().nullish(),
      max_output_tokens: z.number().nullish(),
      architecture: z.object({ input_modalities: z.array(z.string()) }).optional(),
      supported_parameters: z.array(z.string()).optional(),
      pricing: z.object({ prompt: z.string(), completion: z.string() }).optional(),
    }),
  ),
})

interface SignedIn {
  readonly gateway: string
  readonly access_token: string
}

/** The models that the person may use, as the catalog describes them. The catalog itself may need a management token. */
export async function listModels({ gateway, access_token }: SignedIn): Promise<readonly ConnectModel[]> {
  const headers = { authorization: `Bearer ${access_token}` }
  const answer = await request(`${gateway}/v1/models`, { method: 'GET', headers })
  const list = 'trouble' in answer ? answer : modelsSchema.safeParse(answer.body)
  if ('data' in list && list.data) return list.data.data.map(catalogModel)
  const why = 'trouble' in answer ? answer.trouble : `it answered ${answer.status}`
  throw new Refusal(exitCodes.failed, `${gateway} does not list its models: ${why}.`, `tollgate login ${gateway}`)
}

function catalogModel(model: z.output<typeof modelsSchema>['data'][number]): ConnectModel {
  const { id, name, context_length, max_output_tokens, architecture, supported_parameters = [], pricing } = model
  const perMillion = (usd: string) => String(Number(usd) * 1_000_000)
  const tags = [
    ...(['tools', 'reasoning'] as const).filter((tag) => supported_parameters.includes(tag)),
    ...(architecture?.input_modalities.includes('image') ? (['vision'] as const) : []),
  ]
  return {
    ...{ id, name: name ?? id, tags },
    ...{ context_tokens: context_length ?? null, max_output_tokens: max_output_tokens ?? null },
    ...(pricing && { price: { input: perMillion(pricing.prompt), output: perMillion(pricing.completion) } }),
  }
}

export function reasonOf(outcome: OAuthError | NoAnswer): string {
  if ('trouble' in outcome) return outcome.trouble
  return cleanText(outcome.description ?? outcome.error).replace(/\.$/, '')
}

async function post<Schema extends z.ZodType>(
  address: string,
  form: Readonly<Record<string, string>>,
  schema: Schema,
  withinMs = timeoutMs,
): Promise<Outcome<z.output<Schema>>> {
  const answer = await request(address, { method: 'POST', body: new URLSearchParams(form) }, withinMs)
  if ('trouble' in answer) return answer
  const { status, body } = answer
  const success = status === 200 ? schema.safeParse(body) : undefined
  if (success?.success) return success.data
  const refusal = status >= 400 && status < 500 ? errorSchema.safeParse(body) : undefined
  if (refusal?.success) return { error: refusal.data.error, description: refusal.data.error_description }
  return { trouble: `it answered ${status}, but not as a Tollgate does` }
}

async function request(
  address: string,
  init: RequestInit,
  withinMs = timeoutMs,
): Promise<NoAnswer | { readonly status: number; readonly body: unknown }> {
  try {
    const signal = AbortSignal.timeout(withinMs)
    // Certificates are checked whatever the environment says: the folder's .env file may be somebody else's.
    const tls = { rejectUnauthorized: true }
    const headers = { accept: 'application/json', ...(init.headers as Record<string, string> | undefined) }
    const response = await fetch(address, { ...init, headers, redirect: 'manual', signal, tls })
    return { status: response.status, body: parseJson(await response.text()) }
  } catch (thrown) {
    return { trouble: troubleOf(thrown, withinMs) }
  }
}

function troubleOf(thrown: unknown, withinMs: number): string {
  if (!(thrown instanceof Error)) return 'it does not answer'
  if (thrown.name === 'TimeoutError') return `no answer within ${withinMs / 1000} s`
  return /certificate|self.signed|tls/i.test(`${thrown.message}`)
    ? `its certificate is not valid`
    : 'it does not answer'
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
