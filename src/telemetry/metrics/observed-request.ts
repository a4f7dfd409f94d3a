// A finished request as metrics and traces see it: its record, and a few facts that the record may come to carry. Each
// of these is derived as well as can be where it is missing.

import type { AttemptRecord, RequestRecord } from '../request-record.ts'

/** Which trace a request belongs to, and what its own span is called there. */
export interface TraceContext {
  /** 32 and 16 hexadecimal digits. */
  readonly traceId: string
  readonly spanId: string
  /** The caller's span; undefined = the trace begins here. */
  readonly parentSpanId: string | undefined
  readonly sampled: boolean
}

export interface ObservedAttempt extends AttemptRecord {
  /** When it began, in milliseconds after the request. */
  readonly startMs?: number
  /** How long the provider was waited for, unrounded; absent = `ms`. */
  readonly waitedMs?: number
}

export interface ObservedRequest extends RequestRecord {
  /** Of the surface. */
  readonly dialect?: string | undefined
  attempts: ObservedAttempt[]
  /** Whose limit refused it, such as `key requests`. */
  readonly limitSource?: string | undefined
  readonly trace?: TraceContext | undefined
}

/** What has no value: no model was found, no provider was asked. */
export const none = 'none'

export function dialectOf({ dialect, path }: ObservedRequest): string {
  if (dialect !== undefined) return dialect
  if (path.includes('/chat/completions')) return 'openai-chat'
  return path.includes('/messages') ? 'anthropic-messages' : none
}

/** Counting tokens generates nothing; its times say nothing about a model. */
export function isGeneration({ path }: ObservedRequest): boolean {
  return !path.endsWith('/count_tokens')
}

/** Our own time before the first event: all of it, without the waiting for providers. undefined = nobody answered. */
export function overheadMs({ firstEventMs, attempts }: ObservedRequest): number | undefined {
  if (firstEventMs === undefined) return undefined
  let waitedMs = 0
  for (const attempt of attempts) waitedMs += attempt.waitedMs ?? attempt.ms
  return Math.max(0, firstEventMs - waitedMs)
}

export function limitSourceOf({ code, attempts, limitSource }: ObservedRequest): string | undefined {
  if (code !== 'LIMIT_EXCEEDED') return undefined
  return limitSource ?? (attempts.length > 0 ? 'provider' : 'gateway')
}

// `name_dropped /messages/3/name` → `/messages/*/name`: the place without its number, and no deeper, because names
// further down are the caller's own.
export function warnedField(warning: string): string {
  const pointer = warning.slice(warning.indexOf(' ') + 1)
  const [, top = '', second, third] = pointer.split('/')
  if (second === undefined || !/^[0-9]+$/.test(second)) return `/${top}`
  return third === undefined ? `/${top}/*` : `/${top}/*/${third}`
}
