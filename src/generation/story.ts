// What one request leaves behind: its record, kept while it runs and written once when it is over, and the answers that
// end it early.

import { priceUsage } from '../catalog/price.ts'
import type { Dialect } from '../dialects/dialect.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { createId } from '../kernel/ids.ts'
import type { Usage } from '../kernel/usage.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Log } from '../telemetry/log.ts'
import { createRecord, logRequest, type RequestRecord } from '../telemetry/request-record.ts'
import { type AnswerHeaders, failureResponse, generationHeaders } from './answer-headers.ts'
import type { StreamEnd } from './answer-stream.ts'

/** The client's socket, as far as a generation may touch it. */
export interface Connection {
  /** The runtime closes silent connections; a generation may be silent for minutes. */
  keepOpen(): void
  /** Back to the usual idle limit. */
  rearm(): void
  /** Frees the socket of a client that no longer reads. */
  drop(): void
}

export interface StoryDependencies {
  readonly clock: Clock
  readonly log: Log
}

export interface Story {
  readonly record: RequestRecord
  /** The candidate that is being tried, or that answered. */
  candidate: Candidate | undefined
  noteAttempt(candidate: Candidate, outcome: string): void
  noteFirstEvent(): void
  headers(): AnswerHeaders
  settle(end: StreamEnd, usage: Usage | undefined, model: OfferedModel): void
  /** Ends it before anything was sent. */
  refuse(failure: Failure): Response
  /** Ends it for a client that is no longer there. */
  abandon(): Response
}

/** Nothing is sent with it; it marks the record of a client that left. */
const clientLeftStatus = 499

export function startStory(
  { clock, log }: StoryDependencies,
  surface: Dialect,
  path: string,
  connection: Connection,
): Story {
  const record = createRecord(createId('req'), clock.now(), path)
  const startedMs = clock.monotonicMs()
  connection.keepOpen()

  const finish = (status: number, failure?: Failure): void => {
    record.status = status
    record.code = failure?.code
    record.reason = failure?.message
    record.totalMs = clock.monotonicMs() - startedMs
    connection.rearm()
    logRequest(log, record)
  }
  const story: Story = {
    record,
    candidate: undefined,
    noteAttempt(candidate, outcome) {
      record.attempts.push({ provider: candidate.provider.id, upstreamModel: candidate.route.upstreamModel, outcome })
    },
    noteFirstEvent() {
      record.firstEventMs = clock.monotonicMs() - startedMs
    },
    headers: () => generationHeaders(record.id, story.candidate, Math.max(1, record.attempts.length)),
    settle(end, usage, model) {
      record.usage = usage
      record.cost = usage && priceUsage(model.price, usage)
      if (end === 'client left') finish(clientLeftStatus)
      else finish(200, end instanceof Failure ? end : undefined)
    },
    refuse(failure) {
      finish(failure.status, failure)
      const headers = generationHeaders(record.id, story.candidate, record.attempts.length)
      return failureResponse(surface, failure, headers, record.id)
    },
    abandon() {
      finish(clientLeftStatus)
      return new Response(null, { status: clientLeftStatus })
    },
  }
  return story
}
