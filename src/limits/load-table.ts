// The loads of all scopes that are in use. Who has nothing taken is forgotten, bit by bit as others come and without a
// timer: a forgotten scope and one that has drained are the same.

import type { LimitScope } from './limit.ts'
import { ScopeLoad } from './scope-load.ts'

/**
 * For each load that may be added, two are looked at. A round over M of them then ends before M/2 new ones are there, so
 * that the table holds at most about twice as many as had something taken during a round.
 */
const looksPerLoad = 2

export class LoadTable {
  // Ids have prefixes: a key's is never a project's.
  readonly #loads = new Map<LimitScope['id'], ScopeLoad>()
  #round = this.#loads.entries()

  /** As it is now, under the scope's limits of now. Nothing may be forgotten before it has begun what it is for. */
  load(scope: LimitScope, nowMs: number): ScopeLoad {
    let load = this.#loads.get(scope.id)
    if (!load) {
      load = new ScopeLoad()
      this.#loads.set(scope.id, load)
    }
    load.advance(nowMs, scope.limits)
    return load
  }

  /** Makes up for as many loads as may be added next. */
  forgetIdle(nowMs: number, loads: number): void {
    for (let look = 0; look < loads * looksPerLoad; look++) {
      const next = this.#round.next()
      if (next.done) {
        // A map's iteration sees what is added meanwhile and survives what is removed, but once done it stays done.
        this.#round = this.#loads.entries()
        return
      }
      const [id, load] = next.value
      if (load.isIdle(nowMs)) this.#loads.delete(id)
    }
  }

  get size(): number {
    return this.#loads.size
  }
}
