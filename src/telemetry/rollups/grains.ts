// How fine the counts are kept: by the hour and the UTC day for each key and model, and by the hour for a whole workspace.

import { addFigures, type Bucket, noFigures } from './count-requests.ts'

export type Grain = 'hour' | 'day' | 'total'

export const dayMs = 86_400_000

export interface GrainBucket extends Bucket {
  readonly grain: Grain
}

/** What requests add to each grain, a row once. */
export function grainsOf(hours: readonly Bucket[]): readonly GrainBucket[] {
  const sums = new Map<string, GrainBucket>()
  const add = (sum: GrainBucket): void => {
    const { grain, hour, workspaceId, keyId, model } = sum
    const name = `${grain} ${hour} ${workspaceId} ${keyId} ${model}`
    const known = sums.get(name)
    if (known) addFigures(known, sum)
    else sums.set(name, copyOf(sum))
  }
  for (const bucket of hours) {
    add({ ...bucket, grain: 'hour' })
    add({ ...bucket, grain: 'day', hour: bucket.hour - (bucket.hour % BigInt(dayMs)) })
    add({ ...bucket, grain: 'total', projectId: noId, keyId: noId, model: '' })
  }
  return [...sums.values()]
}

/** In rows that are of no key. */
const noId = '' as never

/** Its own counts, to be added to. */
function copyOf(bucket: GrainBucket): GrainBucket {
  const copy = { ...bucket, ...noFigures() }
  addFigures(copy, bucket)
  return copy
}
