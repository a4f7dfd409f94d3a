// An in-process store of loads for tests. It can be made to fail or not to answer.

import { applyBatch, type Batch, type LoadStore } from '../../src/limits/batch.ts'
import { type Load, newLoad } from '../../src/limits/load.ts'

export interface EngineStore extends LoadStore {
  /** Runs before each exchange; a promise is awaited before the batch is applied. */
  behaviour: () => void | Promise<void>
  readonly batches: Batch[]
  /** Like a server that restarts empty. */
  forget(): void
}

export function createEngineStore(nowMs: () => number): EngineStore {
  const loads = new Map<string, Load>()
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
