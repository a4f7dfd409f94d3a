// Errors and remaining limits in the form that OpenAI's clients read, which both of its dialects share.

import { type Failure, failureTable, type ProviderRefusal } from '../../kernel/failure.ts'
import type { LimitViews } from '../dialect.ts'

/** The body of an error response. */
export function renderOpenaiFailure(failure: Failure): string {
  return JSON.stringify({ error: errorObject(failure) })
}

export function errorObject(failure: Failure): object {
  const { param, metadata } = failure.facts
  const type = failureTable[failure.code].chatType
  return {
    message: errorMessage(failure),
    type,
    param: param ?? null,
    code: failure.code,
    ...(metadata && { metadata }),
  }
}

export function errorMessage({ message, facts: { refusal } }: Failure): string {
  return refusal ? refusalMessage(message, refusal) : message
}

/** The provider's text and its error code, which some clients look for; `code` is ours. */
function refusalMessage(said: string, { provider, word, overflow, status = 400 }: ProviderRefusal): string {
  const looked = overflow ? 'context_length_exceeded' : word
  const added = looked === undefined || said.includes(looked) ? '' : ` (${looked})`
  return `Provider ${provider} refused the request (${status}): ${said}${added}`
}

// Remaining limits in the headers that OpenAI's clients read:
// https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers

export function limitHeaders({ requests, tokens }: LimitViews): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, view] of [['requests', requests] as const, ['tokens', tokens] as const]) {
    if (!view) continue
    headers[`x-ratelimit-limit-${name}`] = String(view.limit)
    headers[`x-ratelimit-remaining-${name}`] = String(view.remaining)
    headers[`x-ratelimit-reset-${name}`] = durationText(view.resetMs)
  }
  return headers
}

/** `350ms`, `12s`, `6m0s`, `1h0m5s`. Seconds are rounded up, so that waiting that long is enough. */
function durationText(milliseconds: number): string {
  if (milliseconds > 0 && milliseconds < 1000) return `${Math.ceil(milliseconds)}ms`
  const seconds = Math.ceil(milliseconds / 1000)
  const minutes = Math.floor(seconds / 60)
  if (minutes === 0) return `${seconds}s`
  const rest = `${seconds % 60}s`
  return minutes < 60 ? `${minutes}m${rest}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${rest}`
}
