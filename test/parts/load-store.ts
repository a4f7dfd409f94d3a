// A store of loads in this process, for tests of what is built on one. It can be told to fail, or not to answer.

import { applyBatch } from '../../src/limits/shared/apply-batch.ts'
import type { Batch, LoadStore } from '../../src/limits/shared/batch.ts'
import { type LoadState, newLoad } from '../../src/limits/shared/load-state.ts'

export interface EngineStore extends LoadStore {
  /** What exchanges do from now on; a promise is waited for before the batch is applied. */
  behaviour: () => void | Promise<void>
  readonly batches: Batch[]
  /** As a server that was restarted. */
  forget(): void
}

export function createEngineStore(nowMs: () => number): EngineStore {
  const loads = new Map<string, LoadState>()
  const batches: Batch[] = []
  const store: EngineStore = {
    behaviour: () => {},
    batches,
    forget: () => loads.clear(),
    async exchange(batch) {
      await store.behaviour()
      batches.push(batch)
      const states = batch.scopes.map(({ id }) => {
        const load = loads.get(id) ?? newLoad(nowMs())
        loads.set(id, load)
        return load
      })
      return applyBatch(states, batch, nowMs())
    },
  }
  return store
}
