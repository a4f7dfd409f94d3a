// What a caller is told when no candidate answered. The provider's own words only where the request was at fault; trouble
// with the operator's credentials is the operator's, and never reads as trouble with the caller's key.

import { readOverflow } from '../dialects/canonical/faults.ts'
import { Failure } from '../kernel/failure.ts'
import type { Candidate } from './candidate.ts'
import { type AttemptFault, faultTable, isTransient } from './fault.ts'
import { maskSecrets } from './mask-secrets.ts'

const shutDownMessage = 'Tollgate was shut down before a provider had answered. Send the request again.'

/** How long to wait when a throttled provider did not say. */
const throttleDefaultMs = 1_000
/** The same for one that fails: retries of our own have just come to nothing. */
const failingDefaultMs = 4_000
/**
 * The most that clients are told to wait for a cooldown. A route is called during it where no other is left, so the wait
 * only slows them down; Claude Code, which comes back ten times, gives up after two minutes this way.
 */
const cooldownMaxMs = 15_000
/** Official clients disagree on longer waits; above this they are told not to retry by themselves. */
const retryWaitMaxMs = 60_000

/** Characters of a provider's own text that a caller gets, and levels of its `error.details`. */
const providerTextMax = 4096
const detailsDepthMax = 16
/** Where it said nothing, or broke off before it did. */
const silence = 'It did not say why.'
/** Some hosts repeat their status as the code, or write a sentence into it. */
const isWord = /^[A-Za-z][A-Za-z0-9_.-]{2,63}$/

export interface FailedAttempt {
  readonly candidate: Candidate
  readonly fault: AttemptFault
  /** It was not asked: its provider had told us to leave it alone for now, or it had failed too often. */
  readonly heldBackFor?: 'parked' | 'ejected'
  /** How often it was called; absent = it was not. */
  readonly calls?: number
  /** How long it is left alone from now on. */
  readonly waitMs?: number | undefined
}

/** Why no candidate answered, in the order they were tried. */
export class Exhausted {
  constructor(readonly failed: readonly FailedAttempt[]) {}

  get clientLeft(): boolean {
    return this.failed.at(-1)?.fault.class === 'client left'
  }

  /** The last one said that no other route should be tried. */
  get isFinal(): boolean {
    const last = this.failed.at(-1)
    return last !== undefined && !faultTable[last.fault.class].tryNext
  }
}

export function exhaustedFailure(model: string, { failed: all }: Exhausted): Failure {
  // What was ejected was not tried and has not failed; the others decide what kind of failure it is.
  const failed = all.filter(({ heldBackFor }) => heldBackFor !== 'ejected')
  const last = failed.at(-1)
  if (last?.fault.class === "caller's fault") return callersFailure(last)
  if (last && failed.every(({ fault }) => isNamedLack(fault))) return callersFailure(last)
  if (last?.fault.class === 'shut down') return new Failure('OVERLOADED', shutDownMessage, { retryAfterMs: 1000 })
  const refusal = failed[0]?.fault.failure
  if (refusal && failed.every(({ fault }) => fault.failure)) return refusal
  if (failed.length > 0 && failed.every(({ fault }) => fault.class === 'too large')) {
    return new Failure('PAYLOAD_TOO_LARGE', `${names(failed)} refused the request as too large. Send less.`)
  }
  if (failed.length > 0 && failed.every(({ fault }) => fault.class === 'throttled')) return throttledFailure(failed)
  return unavailable(model, all)
}

/** A 404 that clients are told to retry where its cause may pass, and not where only an operator can remove it. */
function unavailable(model: string, all: readonly FailedAttempt[]): Failure {
  const reasons = [...new Set(all.map((each) => `${each.candidate.provider.id} ${reasonFor(each)}`))].join('; ')
  const passing = all.filter(mayPass)
  if (passing.length === 0) {
    const message = `No route of \`${model}\` can serve now: ${reasons}. Use another model.`
    return new Failure('NOT_FOUND', message, { shouldRetry: false })
  }
  const retryAfterMs = Math.min(...passing.map(waitOf))
  const [only] = all.length === 1 ? all : []
  const cause = only
    ? `its provider ${only.candidate.provider.id} is failing (${reasonFor(only)})`
    : `none of its routes can serve now: ${reasons}`
  const message = `\`${model}\` exists, but ${cause}. Retry in ${wholeSeconds(retryAfterMs)} s, or use another model.`
  return new Failure('NOT_FOUND', message, { retryAfterMs, shouldRetry: retryAfterMs <= retryWaitMaxMs })
}

/** Whether the same request may be served by this route after a while, with nothing changed. */
function mayPass({ fault, heldBackFor }: FailedAttempt): boolean {
  if (heldBackFor === 'ejected' || isTransient(fault)) return true
  return fault.class === 'timed out' || fault.class === 'had too little time' || fault.class === 'throttled'
}

function waitOf({ fault, waitMs = 0, heldBackFor }: FailedAttempt): number {
  const askedMs = fault.provider?.retryAfterMs ?? failingDefaultMs
  if (heldBackFor === 'ejected') return Math.min(askedMs, cooldownMaxMs)
  return Math.max(askedMs, Math.min(waitMs, cooldownMaxMs))
}

function wholeSeconds(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1000))
}

function reasonFor({ candidate: { isOwn, refusal }, fault, heldBackFor, calls = 0 }: FailedAttempt): string {
  if (refusal) return "cannot be called with the workspace's own key"
  if (fault.class === 'refused our credential') {
    return isOwn
      ? "rejected the workspace's own credential (replace it in the console under Providers)"
      : "rejected the gateway's credential (the operator of this gateway has to replace it)"
  }
  if (fault.class === 'out of quota') {
    return isOwn
      ? "has no quota left for the workspace's own credential"
      : 'refuses to serve this gateway (its operator has to resolve that with the provider)'
  }
  const seconds = heldBackFor ? Math.ceil((fault.provider?.retryAfterMs ?? 0) / 1000) : 0
  const rest = heldBackFor === 'ejected' ? 'cooling' : 'left alone'
  const times = calls > 1 ? ` after ${calls} tries` : ''
  return `${describeFault(fault)}${times}${seconds > 0 ? `, ${rest} for ${seconds} s` : ''}`
}

/** `503`, `timed out`: for messages and log lines; never a provider's billing or credential text. */
export function describeFault(fault: AttemptFault): string {
  return fault.class === 'failing' && fault.status !== undefined ? String(fault.status) : fault.class
}

/**
 * In the words of the provider's API. A 404 without any may be some proxy's, at an address that the operator got wrong;
 * a 400 or 402 tells of the operator's account.
 */
function isNamedLack({ class: faultClass, status, provider }: AttemptFault): boolean {
  const word = provider?.type ?? provider?.code
  return faultClass === 'lacks what was asked for' && word !== undefined && status !== 400 && status !== 402
}

function callersFailure({ candidate, fault }: FailedAttempt): Failure {
  const said = fault.provider
  const mask = (text: string): string => maskSecrets(text, candidate.provider.apiKey)
  const word = said?.code === said?.type ? '' : mask(said?.code ?? '')
  return new Failure('INVALID_REQUEST', mask(said?.message || silence).slice(0, providerTextMax), {
    refusal: {
      provider: candidate.provider.id,
      dialect: candidate.dialect.id,
      status: fault.status,
      word: isWord.test(word) ? word : undefined,
      overflow: said && readOverflow(said),
    },
    ...(said?.param === undefined ? {} : { param: mask(said.param) }),
    ...(said?.details === undefined ? {} : { details: maskWithin(said.details, mask) }),
  })
}

/** They came as JSON, of any depth; what nests further than people write is left out. */
function maskWithin(details: unknown, mask: (text: string) => string, depth = 0): unknown {
  if (typeof details === 'string') return mask(details)
  if (typeof details !== 'object' || details === null) return details
  if (depth === detailsDepthMax) return '…'
  if (Array.isArray(details)) return details.map((one) => maskWithin(one, mask, depth + 1))
  const entries = Object.entries(details).map(([name, value]) => [name, maskWithin(value, mask, depth + 1)] as const)
  return Object.fromEntries(entries)
}

function throttledFailure(failed: readonly FailedAttempt[]): Failure {
  // Whoever comes back earlier would only be told that it is still left alone.
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
      ...(retryAfterMs > retryWaitMaxMs ? { shouldRetry: false } : {}),
    },
  )
}

function names(failed: readonly FailedAttempt[]): string {
  return `Provider ${[...new Set(failed.map(({ candidate }) => candidate.provider.id))].join(', ')}`
}
