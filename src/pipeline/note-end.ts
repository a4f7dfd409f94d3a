// How a request ended, as its record tells it.

import type { Failure } from '../kernel/failure.ts'
import type { RequestRecord } from '../telemetry/request-record.ts'
import { endAttemptsUnderWay } from './attempt-note.ts'

/** Nothing is sent with it; it marks the record of a client that left. */
export const clientLeftStatus = 499

export function noteEnd(record: RequestRecord, status: number, failure: Failure | undefined, totalMs: number): void {
  record.status = status
  record.code = failure?.code
  record.reason = failure && recordedReason(failure)
  record.totalMs = totalMs
  endAttemptsUnderWay(record, unawaited(status, failure), totalMs)
}

/** A provider that refuses a request may quote it, and prompts are not kept: of its words only the one for the cause is. */
function recordedReason({ message, facts }: Failure): string {
  const { refusal } = facts
  if (!refusal) return message
  return `Provider ${refusal.provider} refused the request${refusal.word === undefined ? '' : `: ${refusal.word}`}`
}

/** What became of an attempt that its request has not waited for. */
function unawaited(status: number, failure: Failure | undefined): string {
  if (status === clientLeftStatus) return 'client left'
  if (!failure) return 'superseded'
  return failure.code === 'INTERNAL' ? 'failed here' : 'shut down'
}
