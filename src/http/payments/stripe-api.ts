// Calls Stripe's REST API. It never throws for what a network or Stripe can do; callers decide what a reply means.

import { z } from 'zod'
import { parseJson } from '../../dialects/canonical/json.ts'
import type { Secret } from '../../kernel/secret.ts'
import type { LogFields } from '../../telemetry/log.ts'
import { readResponseBody } from '../../wire/read-body.ts'

/** The connection failed, possibly after Stripe had processed the request. */
export class Unreached {
  constructor(readonly error: unknown) {}
}

export interface StripeReply {
  readonly status: number
  /** undefined = not JSON. */
  readonly json: unknown
  /** Stripe's request id, for its support and its log. */
  readonly stripeRequestId: string | undefined
}

export type StripeApi = ReturnType<typeof createStripeApi>

/** Pinned, so that parameters do not depend on the account's default version. */
const apiVersion = '2025-05-28.basil'

const attemptTimeoutMs = 10_000
const attemptsMax = 2
const replyBytesMax = 1024 * 1024

export function createStripeApi({ secretKey, baseUrl }: { secretKey: Secret; baseUrl: string }) {
  const headers = () => ({
    authorization: `Bearer ${secretKey.reveal()}`,
    'stripe-version': apiVersion,
    'accept-encoding': 'identity',
    'user-agent': 'tollgate',
  })
  return {
    /**
     * Under one idempotency key Stripe does the work once and repeats its first answer, also a server error, for at least a
     * day. See `keyOf` and `isKeyUsedUp`.
     */
    post: (path: string, form: Readonly<Record<string, string>>, key: string) =>
      withRetry(baseUrl + path, () => ({
        method: 'POST',
        headers: {
          ...headers(),
          'content-type': 'application/x-www-form-urlencoded',
          'idempotency-key': `tollgate-${key}`,
        },
        body: new URLSearchParams(form).toString(),
      })),
    get: (path: string) => withRetry(baseUrl + path, () => ({ method: 'GET', headers: headers() })),
  }
}

/**
 * Only a failed connection is worth a second attempt: under one idempotency key Stripe repeats its first answer, even
 * a 500, and that same key makes it safe. https://docs.stripe.com/api/idempotent_requests
 */
async function withRetry(url: string, init: () => RequestInit): Promise<StripeReply | Unreached> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call(url, init())
    } catch (error) {
      if (attempt === attemptsMax) return new Unreached(error)
    }
  }
}

async function call(url: string, init: RequestInit): Promise<StripeReply> {
  const response = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(attemptTimeoutMs) })
  const body = await readResponseBody(response, replyBytesMax)
  return {
    status: response.status,
    json: body === 'too-large' ? undefined : parseJson(new TextDecoder().decode(body)),
    stripeRequestId: response.headers.get('request-id') ?? undefined,
  }
}

/** The idempotency key of the next attempt, given how many are used up. */
export function keyOf({ id, failedKeys }: { readonly id: string; readonly failedKeys: number }): string {
  return failedKeys === 0 ? id : `${id}-${failedKeys}`
}

/**
 * Whether this idempotency key will never lead to a payment: Stripe repeats a server error for a day, and refuses other
 * parameters, such as another card, under the same key. The work may have been done all the same, so look for it before
 * a new key is used. A lost connection does not use a key up: the request may still be running.
 */
export function isKeyUsedUp(reply: StripeReply | Unreached): boolean {
  if (reply instanceof Unreached) return false
  return reply.status >= 500 || errorOf(reply).type === 'idempotency_error'
}

const text = z.string().optional().catch(undefined)
/** Not its message, which may quote the key. */
const errorSchema = z.object({ error: z.object({ type: text, code: text, decline_code: text, param: text }) })

export function errorOf({ json }: StripeReply): Partial<z.output<typeof errorSchema>['error']> {
  return errorSchema.safeParse(json).data?.error ?? {}
}

/** What went wrong, for the log. */
export function replyFields(reply: StripeReply | Unreached): LogFields {
  if (reply instanceof Unreached) return { error: reply.error instanceof Error ? reply.error.name : 'unknown' }
  return { status: reply.status, stripe_request_id: reply.stripeRequestId, ...errorOf(reply) }
}
