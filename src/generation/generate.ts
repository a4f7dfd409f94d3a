// The story of one generation, told once for both surfaces, streamed or not. Each step may end it with a failure in the
// caller's dialect; whatever happens, the request is recorded exactly once.

import type { Dialect } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Candidate } from '../routing/candidate.ts'
import { describeFault, Exhausted, exhaustedFailure, tryCandidates } from '../routing/failover.ts'
import { type AdmitDependencies, admit } from './admit.ts'
import { type AnswerHeaders, streamHeaders } from './answer-headers.ts'
import { answerStream, type Opened } from './answer-stream.ts'
import { type Answered, createAttempt, isAnswered, type OpenStream, type WholeReply } from './attempt.ts'
import { Call } from './call.ts'
import { warningsHeader } from './lane.ts'
import { type Connection, Story, type StoryDependencies } from './story.ts'
import type { Ticker, Watched } from './ticker.ts'

export interface GenerateDependencies extends AdmitDependencies, StoryDependencies {
  readonly ticker: Ticker
  /** What the caller is told of a defect of ours; the details go to the log, under the same id. */
  onDefect(error: unknown, id: RequestId): Failure
}

export type Generate = (request: Request, surface: Dialect, path: string, connection: Connection) => Promise<Response>

/** Nothing meaningful after this long: headers go out, and keep-alives after them. */
const earlyHeadersMs = 10_000

export function createGenerate(deps: GenerateDependencies): Generate {
  const { clock, ticker } = deps
  const attempt = createAttempt(deps)

  return async (request, surface, path, connection) => {
    const story = new Story(deps, surface, path, connection)
    try {
      // 1 authenticate · 2 read the body · 3 envelope · 5 plan
      const admitted = await admit(deps, request, story, surface.readEnvelope)
      if (admitted instanceof Failure) return story.refuse(admitted, request.signal)

      // 7 failover: each candidate in turn, until one is committed
      const call = new Call(request, admitted, story)
      const trying = tryCandidates(admitted.candidates, (candidate) => tryOne(candidate, call), isAnswered)

      // 8 answer · 9 settle, with the request record
      if (!call.envelope.stream) return answerWhole(concluded(await trying, call), call)
      const opening = trying.then((outcome) => concluded(outcome, call))
      const opened = await before(clock.monotonicMs() + earlyHeadersMs, opening, ticker)
      return answerStreamed(opened === 'not yet' ? opening : opened, call)
    } catch (error) {
      return story.refuse(deps.onDefect(error, story.record.id))
    }
  }

  async function tryOne(candidate: Candidate, call: Call) {
    call.story.candidate = candidate
    const result = await attempt(call, candidate)
    if (isAnswered(result)) call.story.noteAttempt(candidate, 'ok')
    // A route that could not be asked was not tried.
    else if (!result.failure) call.story.noteAttempt(candidate, describeFault(result))
    return result
  }

  function answerStreamed(opened: Opened | Promise<Opened>, call: Call): Response {
    const { story, surface, model } = call
    const headers = streamHeaders(story.headers())
    if (!(opened instanceof Promise)) {
      const ended = endedEarly(opened, story)
      if (ended) return ended
      addWarnings(headers, opened as OpenStream)
    }
    const body = answerStream({
      surface,
      requestId: story.record.id,
      opening: opened as OpenStream | Promise<Opened>,
      ticker,
      connection: story.connection,
      onDefect: (error) => deps.onDefect(error, story.record.id),
      settle: (end, usage) => story.settle(end, usage, model),
    })
    return new Response(body, { headers })
  }
}

/** What the tries came to, as the caller will learn it. */
function concluded(outcome: Answered | Exhausted, { story, model }: Call): Opened {
  if (outcome instanceof Exhausted) return outcome.clientLeft ? 'client left' : exhaustedFailure(model.id, outcome)
  story.noteFirstEvent()
  return outcome
}

function endedEarly(opened: Opened, story: Story): Response | undefined {
  if (opened instanceof Failure) return story.refuse(opened)
  return opened === 'client left' ? story.abandon() : undefined
}

function answerWhole(opened: Opened, { story, model }: Call): Response {
  const ended = endedEarly(opened, story)
  if (ended) return ended
  const reply = opened as WholeReply
  story.settle('complete', reply.usage, model)
  const headers = story.headers()
  headers['content-type'] = 'application/json'
  if (story.record.costUsd !== undefined) headers['x-tollgate-cost'] = story.record.costUsd
  if (reply.usage?.source === 'estimated') headers['x-tollgate-usage'] = 'estimated'
  addWarnings(headers, reply)
  return new Response(reply.body, { headers })
}

function addWarnings(headers: AnswerHeaders, { warnings }: Answered): void {
  if (warnings.length > 0) headers['x-tollgate-warnings'] = warningsHeader(warnings)
}

/** What the promise brings, or `not yet` when it takes longer. */
async function before<Value>(deadlineMs: number, promise: Promise<Value>, ticker: Ticker): Promise<Value | 'not yet'> {
  const late = Promise.withResolvers<'not yet'>()
  const watched: Watched = { seat: -1, tick: (nowMs) => (nowMs >= deadlineMs ? late.resolve('not yet') : undefined) }
  ticker.watch(watched)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    ticker.unwatch(watched)
  }
}
