// The address at which the gateway of a data folder listens, as it noted it there itself: a port that was chosen for one
// start, or by the system, is in no setting that a command could read.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** In the data folder; it stays when the gateway has gone. */
export const addressFile = 'address'

/** undefined = none was noted. */
export function readNotedAddress(dataFolder: string): URL | undefined {
  try {
    const url = URL.parse(readFileSync(join(dataFolder, addressFile), 'utf8').trim())
    return url?.protocol === 'http:' ? url : undefined
  } catch {
    return undefined
  }
}
