// Which of the queued operations go into the next commit together.

import type { WorkspaceId } from '../../kernel/ids.ts'
import type { SharedOperation } from './operation.ts'

const batchMax = 256

export interface Entry {
  readonly operation: SharedOperation
  readonly submittedMs: number
  /** It may have been committed by a commit whose answer was lost. */
  tried: boolean
  /** A batch that it was in has failed by the fault of one operation: this one is tried by itself. */
  isAlone: boolean
}

export interface BatchRules {
  /** Operations of this wallet stay where they are. */
  isWaiting(workspaceId: WorkspaceId): boolean
  /** Operations of this wallet go with no other's. */
  isApart(workspaceId: WorkspaceId): boolean
}

/**
 * What comes first, up to an operation on a request that is in the batch already: its turn is after the commit. Only the
 * mark that a body was sent gives way to the end of its request, which says more.
 */
export function takeBatch(queue: Entry[], { isWaiting, isApart }: BatchRules): Entry[] {
  const batch: Entry[] = []
  const places = new Map<string, number>()
  let from = 0
  /** The wallet that the batch is for, where it is for no other. */
  let only: WorkspaceId | undefined
  const left: Entry[] = []
  for (; from < queue.length && batch.length < batchMax; from++) {
    const entry = queue[from] as Entry
    const { operation } = entry
    const { workspaceId } = operation
    const isOthers = only !== undefined ? workspaceId !== only : batch.length > 0 && isApart(workspaceId)
    if (isOthers || isWaiting(workspaceId)) {
      left.push(entry)
      continue
    }
    if (batch.length > 0 && (entry.isAlone || batch[0]?.isAlone)) break
    const place = places.get(operation.requestId) ?? batch.length
    const earlier = batch[place]?.operation
    if (earlier && (earlier.kind !== 'sent' || !isEnd(operation))) break
    earlier?.answer(undefined)
    places.set(operation.requestId, place)
    batch[place] = entry
    if (isApart(workspaceId)) only = workspaceId
  }
  queue.splice(0, from, ...left)
  return batch
}

function isEnd({ kind }: SharedOperation): boolean {
  return kind === 'settle' || kind === 'release'
}
