// What is left of a caller's limits, in the headers that Anthropic's clients read:
// https://docs.anthropic.com/en/api/rate-limits#response-headers

import { isoTime } from '../../kernel/clock.ts'
import type { LimitViews } from '../dialect.ts'

export function limitHeaders({ requests, tokens }: LimitViews, now: number): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, view] of [['requests', requests] as const, ['tokens', tokens] as const]) {
    if (!view) continue
    headers[`anthropic-ratelimit-${name}-limit`] = String(view.limit)
    headers[`anthropic-ratelimit-${name}-remaining`] = String(view.remaining)
    headers[`anthropic-ratelimit-${name}-reset`] = wholeSecond(now + view.resetMs)
  }
  return headers
}

/** RFC 3339, rounded up: at the moment it names, all of it is there. */
function wholeSecond(epochMs: number): string {
  return isoTime(Math.ceil(epochMs / 1000) * 1000).replace('.000Z', 'Z')
}
