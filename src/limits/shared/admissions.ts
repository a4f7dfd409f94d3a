// From what the store, or the share of this process, decided to what a caller is told; and what the end of a request
// does. Everything is counted in two places: in the store, and here for the time when the store is away.

import { assert } from '../../kernel/assert.ts'
import { tokensMax } from '../../kernel/usage.ts'
import type { LimitScope } from '../limit.ts'
import type { Admission, Refused } from '../limiter.ts'
import type { AdmitAnswer } from './batch.ts'
import type { AdmitEntry, EndEntry } from './build-batch.ts'
import { endOnShare, type LocalScope, type LocalScopes, type ShareReservation, shareOf } from './local-scopes.ts'
import { refusal, statesOf } from './verdict.ts'

export interface Desk {
  readonly locals: LocalScopes
  readMs(): number
  liveReplicas(): number
  /** How long it counts what others had running when the store last spoke of them. */
  readonly knownMs: number
  /** To be told to the store. */
  submit(entry: EndEntry): void
}

export function answerShared({ locals, readMs, submit }: Desk, entry: AdmitEntry, answer: AdmitAnswer): void {
  const { scopes, tokens, resolve } = entry
  const nowMs = readMs()
  const own = scopes.map((scope) => locals.of(scope))
  for (const [at, load] of answer.loads.entries()) {
    const scope = own[at]
    if (scope) locals.hear(scope, load, { nowMs, admitted: answer.admitted })
  }
  if (entry.answered) {
    // Its caller was answered without the store; what the store took for it goes back.
    if (answer.admitted) submit(endOf(entry, own, answer, 0))
    return
  }
  entry.answered = true
  if (!answer.admitted) return resolve(refusal(scopes, answer.loads, tokens))
  for (const scope of own) scope.running++
  resolve(
    admission(statesOf(scopes, answer.loads), (actualTokens) => {
      for (const scope of own) scope.running--
      submit(endOf(entry, own, answer, actualTokens))
    }),
  )
}

function endOf(
  { scopes, tokens }: AdmitEntry,
  own: readonly LocalScope[],
  { loads }: AdmitAnswer,
  actualTokens: number,
): EndEntry {
  const ended = own.map((scope, at) => {
    const sequence = loads[at]?.sequence
    const tokensPerMinute = scopes[at]?.limits.tokensPerMinute
    if (sequence === undefined || tokensPerMinute === undefined) return { scope }
    return { scope, reservation: { sequence, tokensPerMinute } }
  })
  return { kind: 'end', scopes: ended, reservedTokens: tokens, actualTokens }
}

export function answerAlone(desk: Desk, entry: AdmitEntry): void {
  if (entry.answered) return
  entry.answered = true
  entry.resolve(admitAlone(desk, entry.scopes, entry.tokens))
}

/** On the share of this process. */
export function admitAlone(desk: Desk, scopes: readonly LimitScope[], tokens: number): Admission | Refused {
  const { locals, readMs, liveReplicas, knownMs } = desk
  const replicas = Math.max(1, liveReplicas())
  const own = scopes.map((scope) => locals.of(scope))
  const sinceMs = readMs() - knownMs
  const shares = scopes.map((scope, at): LimitScope => {
    return { ...scope, limits: shareOf(scope.limits, replicas, own[at]?.places, sinceMs) }
  })
  const answer = locals.admit(own, shares, tokens, readMs())
  if (!answer.admitted) return refusal(shares, answer.loads, tokens)
  const reserved = own.flatMap(({ share }, at): ShareReservation[] =>
    share ? [{ load: share.load, sequence: answer.loads[at]?.sequence }] : [],
  )
  for (const scope of own) scope.running++
  return admission(statesOf(shares, answer.loads), (actualTokens) => {
    for (const scope of own) scope.running--
    for (const each of reserved) endOnShare(each, readMs(), { reservedTokens: tokens, actualTokens })
  })
}

function admission(state: Admission['state'], ending: (actualTokens: number) => void): Admission {
  let ended = false
  return {
    kind: 'admitted',
    state,
    end(actualTokens = 0) {
      assert(!ended, 'an admission ends once')
      ended = true
      ending(wholeTokens(actualTokens))
    },
  }
}

export function wholeTokens(tokens: number): number {
  // A number that is none would stay in a bucket for ever.
  assert(tokens >= 0, 'tokens are counted from 0')
  return Math.min(tokensMax, Math.ceil(tokens))
}
