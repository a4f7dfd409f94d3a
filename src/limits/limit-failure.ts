// What a caller is told who ran into a limit of this gateway: whose limit, in numbers, and how long to wait.

import { Failure } from '../kernel/failure.ts'
import type { Refused } from './limiter.ts'

/** Official clients disagree on longer waits: one ignores them, one gives up, one really sleeps. */
const retryWaitMaxMs = 60_000

export function limitFailure(refused: Refused, callerKeyName: string): Failure {
  const { scope, retryAfterMs } = refused
  const whose = scope.kind === 'key' ? '' : ` (limit of ${scope.kind} "${scope.name}")`
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  const message = `Key "${callerKeyName}" ${happened(refused)}${whose}. Retry in ${seconds} s.`
  const lasting = retryAfterMs > retryWaitMaxMs ? { shouldRetry: false } : {}
  return new Failure('LIMIT_EXCEEDED', message, { retryAfterMs, ...lasting })
}

function happened({ limit, max, used, asked }: Refused): string {
  switch (limit) {
    case 'requests':
      return `used ${used} of ${max} requests per minute`
    case 'tokens':
      return `used ${used} of ${max} tokens per minute, and this request needs up to ${asked}`
    case 'concurrent':
      return `has ${used} of ${max} concurrent requests running`
  }
}
