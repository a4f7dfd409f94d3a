// What metrics and traces read out of a finished request's record.

import type { RequestRecord } from '../request-record.ts'

/** What has no value: no model was found, no provider was asked. */
export const none = 'none'

export function dialectOf({ path }: RequestRecord): string {
  if (path.includes('/chat/completions')) return 'openai-chat'
  return path.includes('/messages') ? 'anthropic-messages' : none
}

/** Counting tokens generates nothing; its times say nothing about a model. */
export function isGeneration({ path }: RequestRecord): boolean {
  return !path.endsWith('/count_tokens')
}

/** Our own time before the first event: all of it, without the waiting for providers. undefined = nobody answered. */
export function overheadMs({ firstEventMs, waitedMs, settleMs }: RequestRecord): number | undefined {
  return firstEventMs === undefined ? undefined : Math.max(0, firstEventMs - waitedMs) + settleMs
}

export function limitSourceOf({ code, attempts, limitSource }: RequestRecord): string | undefined {
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
