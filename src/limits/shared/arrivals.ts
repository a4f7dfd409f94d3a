// A place for a request whose body is still to come. The store is not asked for it: what this process knows is enough to
// turn away whom the store would turn away, and what it does not know the store says when the body is there.

import { assert } from '../../kernel/assert.ts'
import type { LimitScope } from '../limit.ts'
import type { Admission, Arrival, Refused } from '../limiter.ts'
import type { LoadReading } from './batch.ts'
import { advanceBucket, type BucketState } from './bucket-state.ts'
import type { LocalScope, LocalScopes } from './local-scopes.ts'
import { obstacleOf } from './verdict.ts'

export interface Door {
  readonly locals: LocalScopes
  readMs(): number
  admit(scopes: readonly LimitScope[], tokens: number): Admission | Refused | Promise<Admission | Refused>
}

/** `scopes`: limited ones only. */
export function arrive({ locals, readMs, admit }: Door, scopes: readonly LimitScope[]): Arrival | Refused {
  const own = scopes.map((scope) => locals.of(scope))
  const nowMs = readMs()
  const refused = obstacleOf(
    scopes,
    own.map((scope) => knownLoad(scope, nowMs)),
    0,
  )
  if (refused) return refused
  for (const scope of own) scope.arriving++
  let ended = false
  const leave = (): void => {
    for (const scope of own) scope.arriving--
  }
  const ask = async (tokens: number): Promise<Admission | Refused> => {
    assert(!ended, 'an arrival ends once')
    ended = true
    try {
      return await admit(scopes, tokens)
    } finally {
      leave()
    }
  }
  return {
    kind: 'arrived',
    admit: ask,
    // Where the store has no room for it any more, there is nothing left to count against.
    end: () => void ask(0).then((verdict) => (verdict.kind === 'admitted' ? verdict.end(undefined) : undefined)),
  }
}

/** What others do beside this process only makes it more. */
function knownLoad({ limits, seen, running, arriving }: LocalScope, nowMs: number): LoadReading {
  const requests = atNow(seen.requests, nowMs, limits.requestsPerMinute)
  const tokens = atNow(seen.tokens, nowMs, limits.tokensPerMinute)
  return { requests, tokens, running: running + arriving }
}

function atNow(seen: BucketState | undefined, nowMs: number, limit: number | undefined): BucketState | undefined {
  if (!seen) return undefined
  const bucket = { ...seen }
  advanceBucket(bucket, nowMs, limit)
  return bucket
}
