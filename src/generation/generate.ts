// The story of one generation, told once for both surfaces, streamed or not. Each step may end it with a failure in the
// caller's dialect; whatever happens, the request is recorded exactly once.

import type { Dialect, RelayContext } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import type { Candidate } from '../routing/candidate.ts'
import { describeFault, exhaustedFailure, tryCandidates } from '../routing/failover.ts'
import type { AttemptFault } from '../routing/fault.ts'
import { type AdmitDependencies, type Admitted, admit } from './admit.ts'
import { streamHeaders } from './answer-headers.ts'
import { answerStream } from './answer-stream.ts'
import { type Answered, createAttempt, isAnswered, type WholeReply } from './attempt.ts'
import { type Connection, Story, type StoryDependencies } from './story.ts'
import type { Ticker, Watched } from './ticker.ts'

export interface GenerateDependencies extends AdmitDependencies, StoryDependencies {
  readonly ticker: Ticker
}

export type Generate = (request: Request, surface: Dialect, path: string, connection: Connection) => Promise<Response>

/** Nothing meaningful after this long: headers go out, and keep-alives after them. */
const earlyHeadersMs = 10_000

export function createGenerate(deps: GenerateDependencies): Generate {
  const { clock, ticker } = deps
  const attempt = createAttempt(deps)

  return async (request, surface, path, connection) => {
    const story = new Story(deps, surface, path, connection)
    const { record } = story

    // 1 authenticate · 2 read the body · 3 envelope · 5 plan
    const admitted = await admit(deps, { request, surface, readEnvelope: surface.readEnvelope }, record)
    if (admitted instanceof Failure) return request.signal.aborted ? story.abandon() : story.refuse(admitted)
    const { envelope, model } = admitted

    // 7 failover: each candidate in turn, until one is committed
    const relay = relayContext(admitted, story)
    const opening = openFirst(admitted, story, (candidate) =>
      attempt({
        candidate,
        envelope,
        defaultOutputCap: model.defaultMaxTokens,
        clientHeaders: request.headers,
        clientGone: request.signal,
        relay,
        thinks: model.tags.includes('reasoning'),
        onLong: () => connection.keepOpen(),
      }),
    )
    const headersDueMs = clock.monotonicMs() + earlyHeadersMs
    const opened = envelope.stream ? await before(headersDueMs, opening, ticker) : await opening

    // 8 answer · 9 settle, with the request record
    if (opened instanceof Failure) return story.refuse(opened)
    if (opened === 'client left') return story.abandon()
    if (opened === 'not yet' || opened.kind === 'stream') {
      const body = answerStream({
        surface,
        requestId: record.id,
        opening: opened === 'not yet' ? opening : opened,
        clientGone: request.signal,
        ticker,
        nowMs: clock.monotonicMs,
        connection,
        settle: (end, usage) => story.settle(end, usage, model),
      })
      return new Response(body, { headers: streamHeaders(story.headers()) })
    }
    story.settle('complete', opened.usage, model)
    return wholeResponse(opened, story)
  }
}

/** Runs the candidates and answers with the first that is committed, or with what the caller is to be told. */
async function openFirst(
  { model, candidates }: Admitted,
  story: Story,
  attempt: (candidate: Candidate) => Promise<Answered | AttemptFault>,
): Promise<Answered | Failure | 'client left'> {
  const outcome = await tryCandidates(
    candidates,
    async (candidate) => {
      story.candidate = candidate
      const result = await attempt(candidate)
      story.noteAttempt(candidate, isAnswered(result) ? 'ok' : describeFault(result))
      return result
    },
    isAnswered,
  )
  if (!Array.isArray(outcome)) {
    story.noteFirstEvent()
    return outcome as Answered
  }
  return outcome.at(-1)?.fault.class === 'client left' ? 'client left' : exhaustedFailure(model.id, outcome)
}

function relayContext({ envelope, model }: Admitted, story: Story): RelayContext {
  return {
    modelJson: model.idJson,
    wantsStreamUsage: envelope.wantsStreamUsage,
    costOf: (usage) => story.costUsd(model, usage),
  }
}

function wholeResponse(reply: WholeReply, story: Story): Response {
  const headers = story.headers()
  headers['content-type'] = 'application/json'
  if (story.record.costUsd !== undefined) headers['x-tollgate-cost'] = story.record.costUsd
  return new Response(reply.body, { headers })
}

/** What the promise brings, or `not yet` when it takes longer. */
async function before<Value>(deadlineMs: number, promise: Promise<Value>, ticker: Ticker): Promise<Value | 'not yet'> {
  const late = Promise.withResolvers<'not yet'>()
  const watched: Watched = { tick: (nowMs) => (nowMs >= deadlineMs ? late.resolve('not yet') : undefined) }
  ticker.watch(watched)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    ticker.unwatch(watched)
  }
}
