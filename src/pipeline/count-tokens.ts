// Counts the tokens of a request without generating: by a provider whose dialect has a call for it, otherwise by an
// estimate. It is not billed and does not affect a provider's health.

import { parseJson, recordOf } from '../dialects/canonical/json.ts'
import { assert, Failure } from '../kernel/failure.ts'
import { tokenCount } from '../kernel/usage.ts'
import { callEndpoint, isUnreachable } from '../providers/call-endpoint.ts'
import { describeFault, Exhausted, exhaustedFailure } from '../routing/exhausted.ts'
import { attemptCandidates } from '../routing/failover.ts'
import { type AttemptFault, attemptFault, classifyFault } from '../routing/faults.ts'
import type { Candidate } from '../routing/plan.ts'
import { readResponseBody } from '../wire/read-body.ts'
import { admit } from './admit.ts'
import { answerHeaders } from './answer.ts'
import { AttemptDeadline } from './deadline.ts'
import { countTokensInChunks } from './estimate.ts'
import { GatewayRequest } from './request.ts'
import type { RunDependencies, RunRequest } from './run.ts'
import { endClientLeft, endUncharged, endWithError } from './settlement.ts'

interface Count {
  readonly body: Uint8Array<ArrayBuffer>
}

/** A count that takes longer is estimated, whatever the route's timeouts for answers are. */
const countMs = 30_000
const answerBytesMax = 64 * 1024

export function createCountTokens(deps: RunDependencies): RunRequest {
  // A provider that cannot count may still generate, so its health is read but not changed.
  const { state } = deps.health
  const health = { begin: () => deps.clock.monotonicMs(), state, recordOk() {}, recordFault() {}, recordNothing() {} }
  const withoutLearning = { ...deps, health }
  return async (http, surface, path, connection) => {
    const request = new GatewayRequest(deps.clock, http, surface, path, connection)
    const counting = surface.tokenCount
    assert(counting, 'only a dialect that counts tokens has this path')
    const { path: upstreamPath } = counting
    try {
      const refused = await admit(deps, request, counting.readEnvelope, () => 0)
      if (refused)
        return request.clientGone.aborted ? endClientLeft(deps, request) : endWithError(deps, request, refused)
      const able = request.plan.ordered.filter(({ dialect }) => dialect.id === surface.id)
      if (upstreamPath === undefined || able.length === 0) return await answerEstimate(request)
      const outcome = await attemptCandidates(withoutLearning, {
        plan: { ...request.plan, ordered: able },
        streams: false,
        attempt: (candidate) => countAt(candidate, request, upstreamPath),
        isAnswer: isCount,
        isWanted: () => !request.clientGone.aborted,
      })
      if (!(outcome instanceof Exhausted)) return answer(outcome.body, request)
      if (outcome.clientLeft) return endClientLeft(deps, request)
      // A request that no route accepts is refused; if no route could count, the tokens are estimated.
      if (!outcome.isFinal) return await answerEstimate(request)
      return endWithError(deps, request, exhaustedFailure(request.model.id, outcome))
    } catch (error) {
      return endWithError(deps, request, deps.onDefect(error, request.record.id))
    }
  }

  async function countAt(candidate: Candidate, request: GatewayRequest, path: string): Promise<Count | AttemptFault> {
    const attempt = request.beginAttempt(candidate)
    const limitMs = Math.min(countMs, candidate.route.timeouts.firstEventMs ?? countMs)
    const deadline = new AttemptDeadline(deps.clock.monotonicMs(), limitMs, request)
    deps.ticker.watch(deadline)
    const result = await callForCount(candidate, request, path, deadline)
    deadline.end()
    deps.ticker.unwatch(deadline)
    request.endAttempt(attempt, isCount(result) ? 'ok' : describeFault(result))
    return result
  }

  /** Estimates from the text that the model would read; a header says that it is an estimate. */
  async function answerEstimate(request: GatewayRequest): Promise<Response> {
    const parsed = request.parsed()
    if (parsed instanceof Failure) return endWithError(deps, request, parsed)
    const tokens = await countTokensInChunks(parsed.conversation)
    const response = answer(request.surface.tokenCount?.renderCount(tokens) ?? '', request)
    response.headers.set('x-tollgate-usage', 'estimated')
    return response
  }

  function answer(body: Uint8Array | string, request: GatewayRequest): Response {
    endUncharged(deps, request)
    const headers = { ...answerHeaders(request, deps.clock), 'content-type': 'application/json' }
    return new Response(body, { headers })
  }
}

function isCount(result: Count | AttemptFault): result is Count {
  return 'body' in result
}

async function callForCount(
  { provider, endpoint, route, rules, isOwn }: Candidate,
  { http, envelope, surface }: GatewayRequest,
  path: string,
  deadline: AttemptDeadline,
): Promise<Count | AttemptFault> {
  const edits = { upstreamModel: route.upstreamModel, defaultOutputCap: undefined, isOwn, rules }
  try {
    const response = await callEndpoint(provider, endpoint, {
      path,
      headers: surface.forwardedHeaders(http.headers),
      body: surface.editRequest(envelope, edits).body,
      signal: deadline.signal,
    })
    const body = await readResponseBody(response, answerBytesMax)
    if (body === 'too-large') return attemptFault('garbled')
    const text = new TextDecoder().decode(body)
    if (response.status !== 200) return classifyFault(surface.readFault(response.status, response.headers, text))
    // Not a count, such as the page of a proxy: an estimate is better.
    return tokenCount(recordOf(parseJson(text)).input_tokens) === undefined ? attemptFault('garbled') : { body }
  } catch (error) {
    deadline.abort()
    return deadline.fault(isUnreachable(error) ? 'unreachable' : 'broken')
  }
}
