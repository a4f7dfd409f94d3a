// What is kept of counted requests: sums by the hour, day and week, for each thing that a chart can ask for, of one
// workspace and of all. A question then reads rows by the hours or days it spans, however many requests are in them.

import { addFigures, type Bucket, type Figures, noFigures } from './count-requests.ts'

/** How long each is, in UTC. Weeks begin on Thursdays, as epoch time did. */
export const grainMs = { hour: 3_600_000, day: 86_400_000, week: 604_800_000 } as const
export type Grain = keyof typeof grainMs
const grains: readonly Grain[] = ['hour', 'day', 'week']
export type Series = 'total' | 'model' | 'project' | 'key'

/** In the place of a workspace: all of them. */
export const allWorkspaces = ''

export interface SumRow {
  readonly grain: Grain
  readonly series: Series
  /** Empty = of all workspaces. */
  readonly workspaceId: string
  readonly startAt: bigint
  /** The model, or the id of the project or key; empty in totals. */
  readonly subject: string
  readonly figures: Figures
}

/** What requests add to the sums, a row once. */
export function sumsOf(hours: readonly Bucket[]): readonly SumRow[] {
  const sums = new Map<string, SumRow>()
  for (const bucket of hours) {
    for (const grain of grains) {
      const startAt = bucket.hour - (bucket.hour % BigInt(grainMs[grain]))
      for (const [series, subject] of subjectsOf(bucket)) {
        for (const workspaceId of [bucket.workspaceId, allWorkspaces]) {
          const name = JSON.stringify([grain, series, workspaceId, String(startAt), subject])
          const known = sums.get(name) ?? { grain, series, workspaceId, startAt, subject, figures: noFigures() }
          sums.set(name, known)
          addFigures(known.figures, bucket)
        }
      }
    }
  }
  // In one order everywhere: two replicas that add to the same rows wait for each other, and not both at once.
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum)
}

function subjectsOf({ model, projectId, keyId }: Bucket): readonly (readonly [Series, string])[] {
  return [
    ['total', ''],
    ['model', model],
    ['project', projectId],
    ['key', keyId],
  ]
}
