// Counts the tokens of a request without generating: by a provider whose dialect has a call for it, otherwise by an
// estimate. It is not billed and does not affect a provider's health.

import { parseJson, recordOf } from '../dialects/canonical/json.ts'
import { assert, Failure } from '../kernel/failure.ts'
import { tokenCount } from '../kernel/usage.ts'
import { callEndpoint, isUnreachable } from '../providers/call-endpoint.ts'
import { describeFault, Exhausted, exhaustedFailure } from '../routing/exhausted.ts'
import { attemptEachOnce } from '../routing/failover.ts'
import { type AttemptFault, attemptFault, classifyFault } from '../routing/faults.ts'
import type { Candidate } from '../routing/plan.ts'
import { readResponseBody } from '../wire/read-body.ts'
import { admit } from './admit.ts'
import { Answer, answerHeaders } from './answer.ts'
import { checkPolicies } from './check-policies.ts'
import { AttemptDeadline } from './deadline.ts'
import { countTokensInChunks } from './estimate.ts'
import { Exchange } from './exchange.ts'
import type { RunDependencies, RunRequest } from './run.ts'
import { endClientLeft, endRefused, endUncharged, endWithError } from './settlement.ts'
import { type Admitted, Refusal } from './stages.ts'

interface Count {
  readonly body: Uint8Array<ArrayBuffer>
}

/** A count that takes longer is estimated, whatever the route's timeouts for answers are. */
const countMs = 30_000
const answerBytesMax = 64 * 1024

export function createCountTokens(deps: RunDependencies): RunRequest {
  return async (http, surface, path, connection) => {
    const exchange = new Exchange(deps.clock, http, surface, path, connection)
    const counting = surface.tokenCount
    assert(counting, 'only a dialect that counts tokens has this path')
    const { path: upstreamPath } = counting
    try {
      const admitted = await admit(deps, exchange, counting.readEnvelope, () => 0)
      if (admitted instanceof Refusal) return endRefused(deps, exchange, admitted)
      const able = admitted.plan.ordered.filter(({ dialect }) => dialect.id === surface.id)
      if (upstreamPath === undefined || able.length === 0) return await answerEstimate(admitted)
      const hasPolicies = deps.settings.current.policies.length > 0
      const checked = hasPolicies ? await checkPolicies(deps, admitted) : admitted
      if (checked instanceof Refusal) return endRefused(deps, exchange, checked)
      const outcome = await attemptEachOnce(deps, { ...admitted.plan, ordered: able }, (candidate) =>
        countAt(candidate, admitted, upstreamPath),
      )
      if (!(outcome instanceof Exhausted)) return answer(outcome.body, admitted)
      if (outcome.clientLeft) return endClientLeft(deps, exchange)
      // A request that no route accepts is refused; if no route could count, the tokens are estimated.
      if (!outcome.isFinal) return await answerEstimate(admitted)
      return endWithError(deps, exchange, exhaustedFailure(admitted.model.id, outcome, 'UNAVAILABLE'), admitted.limits)
    } catch (error) {
      return endWithError(deps, exchange, deps.onDefect(error, exchange.record.id))
    }
  }

  async function countAt(candidate: Candidate, admitted: Admitted, path: string): Promise<Count | AttemptFault> {
    const { exchange } = admitted
    const attempt = exchange.attempts.begin(candidate)
    const limitMs = Math.min(countMs, candidate.route.timeouts.firstEventMs ?? countMs)
    const deadline = new AttemptDeadline(deps.clock.monotonicMs(), limitMs, exchange)
    deps.ticker.watch(deadline)
    const result = await callForCount(candidate, admitted, path, deadline)
    deadline.end()
    deps.ticker.unwatch(deadline)
    exchange.attempts.end(attempt, isCount(result) ? 'ok' : describeFault(result))
    return result
  }

  /** Estimates from the text that the model would read; a header says that it is an estimate. */
  async function answerEstimate(admitted: Admitted): Promise<Answer> {
    const { exchange, content, limits } = admitted
    const parsed = content.parsed()
    if (parsed instanceof Failure) return endWithError(deps, exchange, parsed, limits)
    const tokens = await countTokensInChunks(parsed.conversation)
    const estimate = answer(exchange.surface.tokenCount?.renderCount(tokens) ?? '', admitted)
    estimate.headers['x-tollgate-usage'] = 'estimated'
    return estimate
  }

  function answer(body: Uint8Array | string, { exchange, limits }: Admitted): Answer {
    endUncharged(deps, exchange)
    const headers = { ...answerHeaders(exchange, limits), 'content-type': 'application/json' }
    return new Answer(200, headers, body)
  }
}

function isCount(result: Count | AttemptFault): result is Count {
  return 'body' in result
}

async function callForCount(
  { provider, endpoint, route, rules, isOwn }: Candidate,
  { exchange: { http, surface }, content }: Admitted,
  path: string,
  deadline: AttemptDeadline,
): Promise<Count | AttemptFault> {
  const edits = { upstreamModel: route.upstreamModel, defaultOutputCap: undefined, isOwn, rules }
  try {
    const response = await callEndpoint(provider, endpoint, {
      path,
      headers: surface.forwardedHeaders(http.headers),
      body: surface.editRequest(content.sent, edits).body,
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
