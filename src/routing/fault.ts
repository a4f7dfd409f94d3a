// What a failed attempt means: whose fault it was, whether another route may be tried, and what the caller is told when
// none is left. The classes are the rows of one table; a provider's own words only help to find the row.

import { type ProviderFault, readOverflow } from '../dialects/canonical/faults.ts'
import type { Failure } from '../kernel/failure.ts'
import { spokenWaitMs } from './fault-wait.ts'
import {
  isNobodys,
  refusesContent,
  refusesThing,
  saysBadCredential,
  saysLacking,
  saysOutOfQuota,
  saysUnknownModel,
} from './fault-words.ts'

interface FaultRow {
  /** Whether another candidate may be tried. */
  readonly tryNext: boolean
}

export const faultTable = {
  /** No connection, a refused or failed TLS handshake. */
  unreachable: { tryNext: true },
  /** The connection broke before an answer. */
  broken: { tryNext: true },
  /** Nothing meaningful in time. */
  'timed out': { tryNext: true },
  /** A 5xx and its kin, and what no API has said: a wrong address must not be tried first for ever. */
  failing: { tryNext: true },
  /** A 2xx that was not an answer: an error inside it, no content, not the dialect. */
  garbled: { tryNext: true },
  throttled: { tryNext: true },
  /** Our credential was refused. The caller's key is fine, so it must never read as a 401. */
  'refused our credential': { tryNext: true },
  /** The account behind our credential has no money or quota left. */
  'out of quota': { tryNext: true },
  'does not know the model': { tryNext: true },
  /** A file or a feature that the request names is not there for this account. Another provider may have it. */
  'lacks what was asked for': { tryNext: true },
  redirecting: { tryNext: true },
  'too large': { tryNext: true },
  /** The request itself is at fault: every route would say the same. */
  "caller's fault": { tryNext: false },
  /** The request asks for something this route's dialect or model cannot carry; nothing was sent. */
  'cannot carry the request': { tryNext: true },
  /** The request's own deadline came before the route's: the others had used up the time. */
  'had too little time': { tryNext: false },
  /** The client is gone. */
  'client left': { tryNext: false },
  /** We are. */
  'shut down': { tryNext: false },
  /** Another route that was asked beside it began to answer first. */
  superseded: { tryNext: false },
} as const satisfies Record<string, FaultRow>

export type FaultClass = keyof typeof faultTable

export interface AttemptFault {
  readonly class: FaultClass
  /** The provider's HTTP status, where there was one. */
  readonly status: number | undefined
  readonly provider: ProviderFault | undefined
  /** The connection broke at once and without a word: most likely a pooled one that its other end had closed. */
  readonly isStale?: boolean
  /** The request was sent and nothing came back: it may be running there all the same. */
  readonly isAmbiguous?: boolean
  /** Asked once more, the same route may well answer. */
  readonly isRepeatable?: true
  /** What the caller is told where the route could not even be asked. */
  readonly failure?: Failure
}

export function attemptFault(faultClass: FaultClass, provider?: ProviderFault): AttemptFault {
  return { class: faultClass, status: provider?.status, provider }
}

/** Provider-side statuses that usually pass within seconds; 520–529 are those of CDNs and, as 529, of overloaded models. */
function isPassingStatus(status: number | undefined): boolean {
  return status !== undefined && (passingStatuses.has(status) || (status >= 520 && status <= 529))
}

const passingStatuses: ReadonlySet<number> = new Set([408, 500, 502, 503, 504])

/**
 * Whether the same route may well answer the same request a few seconds later: no connection, a broken one, an overloaded
 * or failing server, an empty or garbled answer. A model's slip is not one: it depends on the prompt, not on the moment.
 */
export function isTransient({ class: faultClass, status, provider }: AttemptFault): boolean {
  if (faultClass === 'failing') return isPassingStatus(status)
  if (faultClass === 'garbled') return provider?.isChance !== true
  return faultClass === 'unreachable' || faultClass === 'broken'
}

export function cannotCarry(failure: Failure): AttemptFault {
  return { class: 'cannot carry the request', status: undefined, provider: undefined, failure }
}

/** `sent`: the body that was answered with it, which the provider may quote. */
export function classifyFault(fault: ProviderFault, sent?: Uint8Array): AttemptFault {
  const retryAfterMs = fault.retryAfterMs ?? spokenWaitMs(fault, sent)
  const attempted = attemptFault(faultClass(fault, sent), { ...fault, retryAfterMs })
  return fault.isChance ? { ...attempted, isRepeatable: true } : attempted
}

/**
 * Words by which providers refuse reasoning of their own: it belongs to another organisation, region or model, or a caller
 * has moved it or left out what it led to.
 */
const reasoningWords = new RegExp(
  [
    'invalid_encrypted_content',
    'thought.?signature',
    'invalid `?signature`? in `?thinking`?',
    'thinking`? blocks in the latest assistant message cannot be modified',
    'final block in an assistant message cannot be `?(redacted_)?thinking',
  ].join('|'),
  'i',
)

/** Whether the same request without the reasoning in its history would be taken. */
export function refusesReasoning({ status, code, message }: ProviderFault): boolean {
  return status === 400 && reasoningWords.test(`${code ?? ''} ${message}`)
}

/** Statuses under which providers say that an account has run dry; waiting does not help, whichever it is. */
const quotaStatuses: ReadonlySet<number> = new Set([400, 402, 403, 412, 429])
const credentialStatuses: ReadonlySet<number> = new Set([400, 403, 404])
const modelStatuses: ReadonlySet<number> = new Set([400, 403, 404, 410])
/** Statuses of what this account cannot give to this request. */
const lackStatuses: ReadonlySet<number> = new Set([400, 402])
const goneStatuses: ReadonlySet<number> = new Set([404, 410])
/** What the request leans on failed, such as a tool server that it names, or the service tier of its choice is full. */
const leaningStatuses: ReadonlySet<number> = new Set([424, 498])
/** The request itself is wrong, so that every route would say the same. Other 4xx are about addresses and deployments. */
const callerStatuses: ReadonlySet<number> = new Set([400, 414, 422, 431, 451])

function faultClass(fault: ProviderFault, sent: Uint8Array | undefined): FaultClass {
  const { status } = fault
  if (isOverflow(fault)) return "caller's fault"
  // An error under a 200 that says nothing about whose fault it is; a reply that was none, told as a refusal.
  if (status === undefined || fault.isChance) return 'garbled'
  if (quotaStatuses.has(status) && saysOutOfQuota(fault, sent)) return 'out of quota'
  if (credentialStatuses.has(status) && saysBadCredential(fault, sent)) return 'refused our credential'
  if (modelStatuses.has(status) && saysUnknownModel(fault, sent)) return 'does not know the model'
  if (status === 403 && refusesContent(fault)) return "caller's fault"
  if (goneStatuses.has(status) && isNobodys(fault)) return 'failing'
  // Callers name files and features as they like: what is not there for one of them says nothing about the rest.
  if (lacksThing(fault, status)) return 'lacks what was asked for'
  if (status === 401 || status === 403) return 'refused our credential'
  if (status === 402) return 'out of quota'
  if (status === 413) return 'too large'
  if (status === 429) return 'throttled'
  if (callerStatuses.has(status)) return "caller's fault"
  return status >= 300 && status < 400 ? 'redirecting' : 'failing'
}

function lacksThing(fault: ProviderFault, status: number): boolean {
  if (goneStatuses.has(status) || leaningStatuses.has(status)) return true
  return status === 403 ? refusesThing(fault) : lackStatuses.has(status) && saysLacking(fault)
}

/**
 * Some hosts report a prompt that is too long as a fault of their own. Where a status speaks of our account or of a
 * wait, the same words are about something else, such as tokens per minute.
 */
function isOverflow(fault: ProviderFault): boolean {
  const { status } = fault
  const canBe = status === undefined || status === 400 || status === 413 || status === 422 || status >= 500
  return canBe && readOverflow(fault) !== undefined
}
