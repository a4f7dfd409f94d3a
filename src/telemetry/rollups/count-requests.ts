// Counts requests of the log by hour, key and model: one bucket for each that occurs. It only adds up what it is given.

import type { KeyId, ProjectId, RequestId, WorkspaceId } from '../../kernel/ids.ts'
import { totalInputTokens } from '../../kernel/usage.ts'
import { storedUsage } from '../request-row.ts'
import { firstEventColumns, firstEventPlace } from './first-event.ts'

/** What is read of a request to count it. */
export interface CountedRow {
  readonly id: RequestId
  readonly started_at: bigint
  readonly workspace_id: WorkspaceId
  readonly project_id: ProjectId
  readonly key_id: KeyId
  readonly model: string | null
  readonly code: string | null
  readonly usage: string | null
  readonly charge: bigint | null
  readonly first_event_ms: bigint | null
}

export interface Figures {
  requests: bigint
  errors: bigint
  inputTokens: bigint
  outputTokens: bigint
  charge: bigint
  /** By the places of first-event.ts. */
  readonly firstEvents: bigint[]
}

export interface Bucket extends Figures {
  readonly hour: bigint
  readonly workspaceId: WorkspaceId
  readonly projectId: ProjectId
  readonly keyId: KeyId
  /** Empty = none was named. */
  readonly model: string
}

export const hourMs = 3_600_000

export function noFigures(): Figures {
  const firstEvents = firstEventColumns.map(() => 0n)
  return { requests: 0n, errors: 0n, inputTokens: 0n, outputTokens: 0n, charge: 0n, firstEvents }
}

/** `sign` −1 takes away. */
export function addFigures(sum: Figures, more: Figures, sign = 1n): void {
  sum.requests += sign * more.requests
  sum.errors += sign * more.errors
  sum.inputTokens += sign * more.inputTokens
  sum.outputTokens += sign * more.outputTokens
  sum.charge += sign * more.charge
  const { firstEvents } = more
  for (let place = 0; place < firstEvents.length; place++) {
    const count = firstEvents[place] ?? 0n
    // Most are, and adding to a bigint makes a new one.
    if (count !== 0n) sum.firstEvents[place] = (sum.firstEvents[place] ?? 0n) + sign * count
  }
}

/**
 * One row that cannot be read must not stop the sums of all others. Unreadable usage counts as no tokens, any other
 * unreadable row not at all; `onUnreadable` is called for both.
 */
export function countRequests(rows: readonly CountedRow[], onUnreadable: OnUnreadable = () => {}): readonly Bucket[] {
  const buckets = new Map<string, Bucket>()
  for (const row of rows) {
    try {
      addTo(buckets, row, onUnreadable)
    } catch {
      onUnreadable(row.id)
    }
  }
  return [...buckets.values()]
}

type OnUnreadable = (id: RequestId) => void

function addTo(buckets: Map<string, Bucket>, row: CountedRow, onUnreadable: OnUnreadable): void {
  // Everything that may throw comes before the first sum is changed.
  const figures = figuresOf(row, onUnreadable)
  const hour = row.started_at - (row.started_at % BigInt(hourMs))
  const model = row.model ?? ''
  const name = `${hour} ${row.key_id} ${model}`
  const bucket = buckets.get(name) ?? {
    hour,
    workspaceId: row.workspace_id,
    projectId: row.project_id,
    keyId: row.key_id,
    model,
    ...noFigures(),
  }
  addFigures(bucket, figures)
  buckets.set(name, bucket)
}

function figuresOf(row: CountedRow, onUnreadable: OnUnreadable): Figures {
  const { code, usage, charge, first_event_ms: firstEventMs } = row
  const figures = noFigures()
  figures.requests = 1n
  if (code !== null) figures.errors = 1n
  figures.charge = BigInt(charge ?? 0n)
  if (usage !== null) {
    const used = storedUsage(usage)
    if (used) {
      figures.inputTokens = BigInt(totalInputTokens(used))
      figures.outputTokens = BigInt(used.outputTokens)
    } else onUnreadable(row.id)
  }
  if (firstEventMs !== null) figures.firstEvents[firstEventPlace(Number(firstEventMs))] = 1n
  return figures
}
