// Counting the tokens of a request without generating: asked of a provider whose dialect has a call for it, estimated
// here for every other. It is not billed and not counted against a provider's health.

import { parseJson, recordOf } from '../dialects/canonical/json.ts'
import { assert } from '../kernel/assert.ts'
import { Failure } from '../kernel/failure.ts'
import { tokenCount } from '../kernel/usage.ts'
import { callEndpoint, isUnreachable } from '../providers/call-endpoint.ts'
import type { Candidate } from '../routing/candidate.ts'
import { describeFault, Exhausted, exhaustedFailure } from '../routing/exhausted.ts'
import { tryCandidates } from '../routing/failover.ts'
import { type AttemptFault, attemptFault, classifyFault } from '../routing/fault.ts'
import { readResponseBody } from '../wire/read-body.ts'
import { admit } from './admit.ts'
import { Call } from './call.ts'
import { countTokensGently } from './estimate-tokens.ts'
import type { Generate, GenerateDependencies } from './generate.ts'
import { Patience } from './patience.ts'
import { Story } from './story.ts'

interface Count {
  readonly body: Uint8Array<ArrayBuffer>
}

/** A count that takes longer is estimated here instead, however patient the route is with answers. */
const countMs = 30_000
const answerBytesMax = 64 * 1024

export function createCountTokens(deps: GenerateDependencies): Generate {
  // A provider that cannot count may generate all the same: what it answers here says nothing about its health.
  const { standing } = deps.health
  const health = { begin: () => deps.clock.monotonicMs(), standing, noteOk() {}, noteFault() {}, noteNothing() {} }
  const unlearned = { ...deps, health }
  return async (request, surface, path, connection) => {
    const story = new Story(deps, surface, path, connection)
    const counting = surface.tokenCount
    assert(counting, 'only a dialect that counts tokens is given this path')
    try {
      const admitted = await admit(deps, request, story, counting.readEnvelope, () => 0)
      if (admitted instanceof Failure) return story.refuse(admitted, request.signal)
      const call = new Call(request, admitted, story)
      const able = admitted.plan.ordered.filter(({ dialect }) => dialect === surface)
      if (able.length === 0) return await answerEstimate(call)
      const outcome = await tryCandidates(unlearned, {
        plan: { ...admitted.plan, ordered: able },
        streams: false,
        attempt: (candidate) => askProvider(candidate, call, counting.path),
        isAnswer: isCount,
        isWanted: () => !call.clientGone.aborted,
      })
      if (!(outcome instanceof Exhausted)) return answer(outcome.body, call)
      if (outcome.clientLeft) return story.abandon()
      // What no route would take is refused; where none could count, it is counted here.
      return outcome.isFinal ? story.refuse(exhaustedFailure(call.model.id, outcome)) : await answerEstimate(call)
    } catch (error) {
      return story.refuse(deps.onDefect(error, story.record.id))
    }
  }

  async function askProvider(candidate: Candidate, call: Call, path: string): Promise<Count | AttemptFault> {
    const note = call.story.beginAttempt(candidate)
    const startedMs = deps.clock.monotonicMs()
    const patience = new Patience(startedMs, Math.min(countMs, candidate.route.timeouts.firstEventMs ?? countMs), call)
    deps.ticker.watch(patience)
    const result = await askCount(candidate, call, path, patience)
    patience.end()
    deps.ticker.unwatch(patience)
    note.end(isCount(result) ? 'ok' : describeFault(result))
    return result
  }
}

function isCount(result: Count | AttemptFault): result is Count {
  return 'body' in result
}

function answer(body: Uint8Array | string, { story }: Call): Response {
  story.conclude()
  return new Response(body, { headers: { ...story.headers(), 'content-type': 'application/json' } })
}

/** Counted here, from the text the model would read; the header says that it is an estimate. */
async function answerEstimate(call: Call): Promise<Response> {
  const parsed = call.conversation()
  if (parsed instanceof Failure) return call.story.refuse(parsed)
  const tokens = await countTokensGently(parsed.conversation)
  const response = answer(JSON.stringify({ input_tokens: tokens }), call)
  response.headers.set('x-tollgate-usage', 'estimated')
  return response
}

async function askCount(
  candidate: Candidate,
  { request, envelope, surface }: Call,
  path: string,
  patience: Patience,
): Promise<Count | AttemptFault> {
  const { provider, endpoint, route, rules, isOwn } = candidate
  const edits = { upstreamModel: route.upstreamModel, defaultOutputCap: undefined, isOwn, rules }
  try {
    const response = await callEndpoint(provider, endpoint, {
      path,
      headers: surface.forwardedHeaders(request.headers),
      body: surface.editRequest(envelope, edits).body,
      signal: patience.signal,
    })
    const body = await readResponseBody(response, answerBytesMax)
    if (body === 'too-large') return attemptFault('garbled')
    const text = new TextDecoder().decode(body)
    if (response.status !== 200) return classifyFault(surface.readFault(response.status, response.headers, text))
    // A page of some proxy, or nothing: counted here it is at least a count.
    return tokenCount(recordOf(parseJson(text)).input_tokens) === undefined ? attemptFault('garbled') : { body }
  } catch (error) {
    patience.abort()
    return patience.fault(isUnreachable(error) ? 'unreachable' : 'broken')
  }
}
