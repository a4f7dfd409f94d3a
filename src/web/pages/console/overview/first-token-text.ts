// Times to the first token as the statistics know them: counted between bounds, so that what is below the lowest bound is
// only known to be below it.

import { firstEventBounds } from '../../../../telemetry/rollups/first-event.ts'
import { shortMs } from '../../../catalog/figures.ts'

/** `≈ 420 ms`, `under 25 ms`. */
export function firstTokenText(milliseconds: number): string {
  const lowest = firstEventBounds[0]
  return milliseconds <= lowest ? `under ${shortMs(lowest)}` : `≈ ${shortMs(milliseconds)}`
}
