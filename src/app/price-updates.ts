// The regular price update: reads the list that the operator trusts a minute after the start and then as often as the
// configuration says. It does what `tollgate prices update` does, without accepting jumps. Several replicas may do it: the
// second one finds nothing to change.

import { readPriceSource } from '../catalog/price-source.ts'
import { updatePrices } from '../http/management/catalog.ts'
import type { RouteDependencies } from '../http/management/dependencies.ts'
import { type Base, errorFields } from './open-storage.ts'

export interface PriceUpdateDependencies extends Base, Pick<RouteDependencies, 'database' | 'prices' | 'changes'> {
  /** For tests. */
  readonly firstMs?: number
}

const checkMs = 60_000
const hourMs = 3_600_000

export function startPriceUpdates(deps: PriceUpdateDependencies): { close(): void } {
  const { source, clock, log } = deps
  let lastAt = Number.NEGATIVE_INFINITY
  let isRunning = false
  const check = async (): Promise<void> => {
    const { updateFrom: from, updateHours } = source.current.prices
    if (isRunning || from === undefined || clock.now() - lastAt < updateHours * hourMs) return
    isRunning = true
    lastAt = clock.now()
    try {
      const act = { actor: 'price update', at: clock.now() }
      const { changed, held_back: held } = await updatePrices(
        deps,
        { from, prices: await readPriceSource(from, clock.now()) },
        act,
      )
      log.info('prices were updated', { from, changed: changed.length, held_back: held.length })
      for (const { model, why } of held) log.warn(`the new price of ${model} is held back: ${why}`, { from })
    } catch (error) {
      log.warn('prices cannot be updated; trying again at the next time', errorFields(error))
    } finally {
      isRunning = false
    }
  }
  const timer = setInterval(check, deps.firstMs ?? checkMs)
  timer.unref()
  return { close: () => clearInterval(timer) }
}
