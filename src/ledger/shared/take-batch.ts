// Which of the queued operations go into the next commit together.

import type { SharedOperation } from './operation.ts'
import type { Recalls } from './recalls.ts'

const batchMax = 256

export interface Entry {
  readonly operation: SharedOperation
  readonly submittedMs: number
  /** It may have been committed by a commit whose answer was lost. */
  tried: boolean
}

/**
 * What comes first, up to an operation on a request that is in the batch already: its turn is after the commit. Only the
 * mark that a body was sent gives way to the end of its request, which says more.
 */
export function takeBatch(queue: Entry[], recalls: Recalls): Entry[] {
  const batch: Entry[] = []
  const places = new Map<string, number>()
  let from = 0
  // Those whose wallet's slices are being asked for stay where they are.
  const waiting: Entry[] = []
  for (; from < queue.length && batch.length < batchMax; from++) {
    const entry = queue[from] as Entry
    const { operation } = entry
    if (recalls.isRunning(operation.workspaceId)) {
      waiting.push(entry)
      continue
    }
    const place = places.get(operation.requestId) ?? batch.length
    const earlier = batch[place]?.operation
    if (earlier && (earlier.kind !== 'sent' || !isEnd(operation))) break
    earlier?.answer(undefined)
    places.set(operation.requestId, place)
    batch[place] = entry
  }
  queue.splice(0, from, ...waiting)
  return batch
}

function isEnd({ kind }: SharedOperation): boolean {
  return kind === 'settle' || kind === 'release'
}
