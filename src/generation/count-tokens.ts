// Counting the tokens of a request without generating, where the route's dialect has a call for it. It is not billed
// and not counted against a provider's health.

import { assert } from '../kernel/assert.ts'
import { Failure } from '../kernel/failure.ts'
import { callEndpoint, TransportFault } from '../providers/call-endpoint.ts'
import type { Candidate } from '../routing/candidate.ts'
import { describeFault, exhaustedFailure, tryCandidates } from '../routing/failover.ts'
import { type AttemptFault, attemptFault, classifyFault } from '../routing/fault.ts'
import { readResponseBody } from '../wire/read-body.ts'
import { type Admitted, admit } from './admit.ts'
import type { Generate, GenerateDependencies } from './generate.ts'
import { Patience } from './patience.ts'
import { Story } from './story.ts'

interface Count {
  readonly body: Uint8Array<ArrayBuffer>
}

const countMs = 30_000
const answerBytesMax = 64 * 1024

export function createCountTokens(deps: GenerateDependencies): Generate {
  return async (request, surface, path, connection) => {
    const story = new Story(deps, surface, path, connection)
    const counting = surface.tokenCount
    assert(counting, 'only a dialect that counts tokens is given this path')
    const admitted = await admit(deps, { request, surface, readEnvelope: counting.readEnvelope }, story.record)
    if (admitted instanceof Failure) return request.signal.aborted ? story.abandon() : story.refuse(admitted)

    const outcome = await tryCandidates(
      admitted.candidates,
      async (candidate): Promise<Count | AttemptFault> => {
        story.candidate = candidate
        const patience = new Patience(deps.clock.monotonicMs(), countMs, request.signal, () => connection.keepOpen())
        deps.ticker.watch(patience)
        const result = await askCount(admitted, candidate, counting.path, request, patience)
        patience.end()
        deps.ticker.unwatch(patience)
        story.noteAttempt(candidate, isCount(result) ? 'ok' : describeFault(result))
        return result
      },
      isCount,
    )
    if ('body' in outcome) {
      story.settle('complete', undefined, admitted.model)
      return new Response(outcome.body, { headers: { ...story.headers(), 'content-type': 'application/json' } })
    }
    if (outcome.at(-1)?.fault.class === 'client left') return story.abandon()
    return story.refuse(exhaustedFailure(admitted.model.id, outcome))
  }
}

function isCount(result: Count | AttemptFault): result is Count {
  return 'body' in result
}

async function askCount(
  { envelope }: Admitted,
  candidate: Candidate,
  path: string,
  request: Request,
  patience: Patience,
): Promise<Count | AttemptFault> {
  const { dialect, provider, endpoint, route } = candidate
  const response = await callEndpoint(provider, endpoint, {
    path,
    dialectHeaders: dialect.forwardedHeaders(request.headers),
    body: dialect.editRequest(envelope, {
      upstreamModel: route.upstreamModel,
      defaultOutputCap: undefined,
      rules: candidate.rules,
    }),
    signal: patience.signal,
  })
  if (response instanceof TransportFault)
    return patience.fault(response.kind === 'unreachable' ? 'unreachable' : 'broken')
  try {
    const body = await readResponseBody(response, answerBytesMax)
    if (body === 'too-large') return attemptFault('garbled')
    if (response.status === 200) return { body }
    return classifyFault(dialect.readFault(response.status, response.headers, new TextDecoder().decode(body)))
  } catch {
    return patience.fault('broken')
  }
}
