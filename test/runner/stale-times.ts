// Which figures of test/slow-files.ts no longer hold. A slow file that is begun last is waited for by everyone.

import { slowFiles, slowSeconds } from '../slow-files.ts'

/** Machines differ, and so do two runs on one; more than this is no chance. */
const factor = 2

export function staleTimes(seconds: ReadonlyMap<string, number>): readonly string[] {
  const stale: string[] = []
  for (const [file, took] of seconds) {
    const listed = slowFiles[file]
    const isOff = took > factor * (listed ?? slowSeconds) || (listed !== undefined && took < listed / factor)
    if (isOff) stale.push(`${took.toFixed(0)} s  ${file}  ${listed === undefined ? 'not listed' : `${listed} s there`}`)
  }
  for (const file of Object.keys(slowFiles)) if (!seconds.has(file)) stale.push(`gone  ${file}`)
  return stale
}
