// The error for the caller when no candidate answered. It contains the provider's own words only if the request was at fault;
// problems with the operator's credentials never read as problems with the caller's key.

import { readOverflow } from '../dialects/canonical/faults.ts'
import { type ContextOverflow, Failure } from '../kernel/failure.ts'
import type { Secret } from '../kernel/secret.ts'
import { type AttemptFault, faultTable, isTransient } from './faults.ts'
import type { Candidate } from './plan.ts'

const shutDownMessage = 'Tollgate was shut down before a provider had answered. Send the request again.'

/** The wait if a throttled provider gave none. */
const throttleDefaultMs = 1_000
/** The wait for a failing provider: our own retries have just failed. */
const failingDefaultMs = 4_000
/**
 * The longest wait that clients are given for a cooldown. If no other route is left, the route is called during it, so a
 * longer wait only slows clients down; Claude Code, which retries ten times, would give up after two minutes.
 */
const cooldownMaxMs = 15_000
/** The official clients handle longer waits differently; above this, `x-should-retry: false` keeps them from retrying automatically. */
const retryWaitMaxMs = 60_000

/** Characters of a provider's message that are passed on, and levels of its `error.details`. */
const providerTextMax = 4096
const detailsDepthMax = 16
/** If the provider gave no message. */
const silence = 'It did not say why.'
/** Some hosts put their status or a sentence into the code. */
const isWord = /^[A-Za-z][A-Za-z0-9_.-]{2,63}$/

export interface FailedAttempt {
  readonly candidate: Candidate
  readonly fault: AttemptFault
  /** It was not called: a cooldown was active, or it was ejected. */
  readonly skippedAs?: 'parked' | 'ejected'
  /** How often it was called; absent = never. */
  readonly calls?: number
  /** How long its cooldown or ejection lasts. */
  readonly waitMs?: number | undefined
}

/** Why no candidate answered, in the order they were tried. */
export class Exhausted {
  constructor(readonly failed: readonly FailedAttempt[]) {}

  get clientLeft(): boolean {
    return this.failed.at(-1)?.fault.class === 'client left'
  }

  /** The last fault rules out other routes. */
  get isFinal(): boolean {
    const last = this.failed.at(-1)
    return last !== undefined && !faultTable[last.fault.class].tryNext
  }
}

/** The code of a failure that may pass: see `outageCode` in pipeline/attempt-routes.ts. */
export type OutageCode = 'NOT_FOUND' | 'UNAVAILABLE'

/** `inputTokens`: our estimate of the prompt, for a provider that finds it too long and does not say by how much. */
export function exhaustedFailure(
  model: string,
  { failed: all }: Exhausted,
  outage: OutageCode,
  inputTokens?: () => number,
): Failure {
  // Ejected routes were not tried; the others decide the kind of failure.
  const failed = all.filter(({ skippedAs }) => skippedAs !== 'ejected')
  const last = failed.at(-1)
  if (last?.fault.class === "caller's fault") return callersFailure(last, inputTokens)
  if (last && failed.every(({ fault }) => isNamedByApi(fault))) return callersFailure(last, inputTokens)
  if (last?.fault.class === 'shut down') return new Failure('OVERLOADED', shutDownMessage, { retryAfterMs: 1000 })
  const refusal = failed[0]?.fault.refusal
  if (refusal && failed.every(({ fault }) => fault.refusal)) return refusal
  if (failed.length > 0 && failed.every(({ fault }) => fault.class === 'too large')) {
    return new Failure('PAYLOAD_TOO_LARGE', `${names(failed)} refused the request as too large. Send less.`)
  }
  if (failed.length > 0 && failed.every(({ fault }) => fault.class === 'throttled')) return throttledFailure(failed)
  return unavailable(model, all, outage)
}

/** Clients may retry it if its cause may pass; it is a 404 that they may not if only an operator can remove the cause. */
function unavailable(model: string, all: readonly FailedAttempt[], outage: OutageCode): Failure {
  const reasons = [...new Set(all.map((each) => `${each.candidate.provider.id} ${reasonFor(each)}`))].join('; ')
  const passing = all.filter(mayPass)
  if (passing.length === 0) {
    const message = `No route of \`${model}\` can serve now: ${reasons}. Use another model.`
    return new Failure('NOT_FOUND', message, { shouldRetry: false, cause: 'routes_failed' })
  }
  const retryAfterMs = Math.min(...passing.map(waitOf))
  const [only] = all.length === 1 ? all : []
  const cause = only
    ? `its provider ${only.candidate.provider.id} is failing (${reasonFor(only)})`
    : `none of its routes can serve now: ${reasons}`
  const message = `\`${model}\` exists, but ${cause}. Retry in ${wholeSeconds(retryAfterMs)} s, or use another model.`
  return new Failure(outage, message, {
    retryAfterMs,
    shouldRetry: retryAfterMs <= retryWaitMaxMs,
    cause: 'routes_failed',
  })
}

/** Whether this route may serve the same request later. */
function mayPass({ fault, skippedAs }: FailedAttempt): boolean {
  if (skippedAs === 'ejected' || isTransient(fault)) return true
  return fault.class === 'timed out' || fault.class === 'had too little time' || fault.class === 'throttled'
}

function waitOf({ fault, waitMs = 0, skippedAs }: FailedAttempt): number {
  const askedMs = fault.provider?.retryAfterMs ?? failingDefaultMs
  if (skippedAs === 'ejected') return Math.min(askedMs, cooldownMaxMs)
  return Math.max(askedMs, Math.min(waitMs, cooldownMaxMs))
}

function wholeSeconds(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1000))
}

function reasonFor({ candidate: { isOwn, refusal }, fault, skippedAs, calls = 0 }: FailedAttempt): string {
  if (refusal) return "cannot be called with the workspace's own key"
  if (fault.class === 'refused our credential') {
    return isOwn
      ? "rejected the workspace's own credential (replace it: console → Providers & routes, or `tollgate credentials put`)"
      : "rejected the gateway's credential (the operator of this gateway has to replace it)"
  }
  if (fault.class === 'out of quota') {
    return isOwn
      ? "has no quota left for the workspace's own credential"
      : 'refuses to serve this gateway (its operator has to resolve that with the provider)'
  }
  const seconds = skippedAs ? Math.ceil((fault.provider?.retryAfterMs ?? 0) / 1000) : 0
  const rest = skippedAs === 'ejected' ? 'cooling down' : 'paused'
  const times = calls > 1 ? ` after ${calls} tries` : ''
  const what = fault.class === 'garbled' ? 'invalid response' : describeFault(fault)
  // Not a model that the provider lacks, of which its API would say so.
  if (fault.class === 'failing' && fault.status === 404) {
    return `answers 404${times}; its base_url or dialect may be wrong, which tollgate doctor tells the operator`
  }
  return `${what}${times}${seconds > 0 ? `, ${rest} for ${seconds} s` : ''}`
}

/** `503`, `timed out`: for messages and logs; never a provider's billing or credential text. */
export function describeFault(fault: AttemptFault): string {
  return fault.class === 'failing' && fault.status !== undefined ? String(fault.status) : fault.class
}

/**
 * Whether the provider's API itself says that something is missing. A 404 without a code may come from a proxy at a wrong
 * address; a 400 or 402 is about the operator's account.
 */
function isNamedByApi({ class: faultClass, status, provider }: AttemptFault): boolean {
  const word = provider?.type ?? provider?.code
  return faultClass === 'lacks what was asked for' && word !== undefined && status !== 400 && status !== 402
}

function callersFailure({ candidate, fault }: FailedAttempt, inputTokens?: () => number): Failure {
  const said = fault.provider
  const mask = (text: string): string => maskSecrets(text, candidate.provider.apiKey)
  const word = said?.code === said?.type ? '' : mask(said?.code ?? '')
  return new Failure('INVALID_REQUEST', mask(said?.message || silence).slice(0, providerTextMax), {
    refusal: {
      provider: candidate.provider.id,
      dialect: candidate.dialect.id,
      status: fault.status,
      word: isWord.test(word) ? word : undefined,
      overflow: said && withEstimate(readOverflow(said), candidate.model?.contextTokens, inputTokens),
    },
    ...(said?.param === undefined ? {} : { param: mask(said.param) }),
    ...(said?.details === undefined ? {} : { details: maskWithin(said.details, mask) }),
  })
}

/** Figures that contradict the provider would be worse than none. */
function withEstimate(
  overflow: ContextOverflow | undefined,
  limit: number | undefined,
  inputTokens?: () => number,
): ContextOverflow | undefined {
  if (!overflow || overflow.tokens !== undefined || overflow.limit !== undefined) return overflow
  const tokens = inputTokens?.()
  const isAbove = tokens !== undefined && limit !== undefined && tokens > limit
  return isAbove ? { tokens, limit, isEstimated: true } : overflow
}

/** Masks strings in JSON of any depth; deeper levels are left out. */
function maskWithin(details: unknown, mask: (text: string) => string, depth = 0): unknown {
  if (typeof details === 'string') return mask(details)
  if (typeof details !== 'object' || details === null) return details
  if (depth === detailsDepthMax) return '…'
  if (Array.isArray(details)) return details.map((one) => maskWithin(one, mask, depth + 1))
  const entries = Object.entries(details).map(([name, value]) => [name, maskWithin(value, mask, depth + 1)] as const)
  return Object.fromEntries(entries)
}

function throttledFailure(failed: readonly FailedAttempt[]): Failure {
  // An earlier retry would only hit the cooldown.
  const waits = failed.map(({ fault, waitMs = 0 }) =>
    Math.max(waitMs, fault.provider?.retryAfterMs ?? throttleDefaultMs),
  )
  const retryAfterMs = Math.min(...waits)
  const routes = failed.length === 1 ? 'its only route' : `all ${failed.length} routes`
  return new Failure(
    'LIMIT_EXCEEDED',
    `${names(failed)} throttled ${routes}. Retry in ${wholeSeconds(retryAfterMs)} s.`,
    {
      retryAfterMs,
      cause: 'provider_throttled',
      ...(retryAfterMs > retryWaitMaxMs ? { shouldRetry: false } : {}),
    },
  )
}

function names(failed: readonly FailedAttempt[]): string {
  return `Provider ${[...new Set(failed.map(({ candidate }) => candidate.provider.id))].join(', ')}`
}

// ── Secrets in providers' messages ──

// Providers sometimes quote credentials in error messages, and a caller must not see the operator's. Masks too much rather
// than too little. A secret without a recognisable shape is known only if it is the one that was sent.

/** A shorter key is a placeholder for a host that needs none, and may be a word of the sentence. */
const ownLengthMin = 8

interface Shape {
  /** The part matched by `keep` stays. */
  readonly pattern: RegExp
  readonly keep: string
}

/** Applied in this order; the first are the most certain. */
const shapes: readonly Shape[] = [
  { pattern: /\b(Bearer) \S+/gi, keep: '$1 ' },
  // A JWT, whole or cut off.
  { pattern: /\b(eyJ)[\w-]{8,}(?:\.[\w-]*){0,4}/g, keep: '$1' },
  // Google's access tokens and keys, the access keys of AWS.
  { pattern: /\b(ya29)\.[\w.-]+/g, keep: '$1' },
  { pattern: /\b(AIza)[\w-]{8,}/g, keep: '$1' },
  { pattern: /\b(A[KS]IA)[A-Z0-9]{12,}/g, keep: '$1' },
  // Newer keys of Google's, Replicate's tokens, Bedrock's keys.
  { pattern: /\b(AQ\.|r8_|ABSK)[\w+/=-]{16,}/g, keep: '$1' },
  { pattern: /\b(sk-)[A-Za-z0-9*_-]{16,}/g, keep: '$1' },
  // `gsk_…`, `pplx-…`. Parameter names look similar, but are lower case without digits and shorter than 65 letters.
  { pattern: /\b([A-Za-z]{2,5}[-_])(?=[a-z_-]{0,64}[A-Z0-9*]|[a-z_-]{65})[A-Za-z0-9*_-]{16,}/g, keep: '$1' },
  // Hex and base64, up to three words after a word that names a secret.
  {
    pattern:
      /((?:key|token|secret|authorization|credential|password)s?\W{1,5}(?:\w{1,12}\W{1,5}){0,3}?)[\w+/-]{32,}={0,2}/gi,
    keep: '$1',
  },
]

/** `own`: the credential of the call. */
export function maskSecrets(text: string, own: Secret | undefined): string {
  let masked = text
  for (const part of partsOf(own)) masked = masked.replaceAll(part, '…')
  for (const { pattern, keep } of shapes) masked = masked.replace(pattern, `${keep}…`)
  return masked
}

/** Some credentials have parts, `ID:SECRET:SESSION_TOKEN`; the whole comes first, or it would no longer be found. */
function partsOf(own: Secret | undefined): readonly string[] {
  if (own === undefined) return []
  const whole = own.reveal()
  return [whole, ...whole.split(':')].filter(({ length }) => length >= ownLengthMin)
}
