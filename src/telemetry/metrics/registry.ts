// Every metric of the process: counted as things happen, or asked for when somebody reads. Reading never fails as a
// whole: a value that cannot be had is left out and counted.

import { Counter, Histogram } from './instruments.ts'
import type { HistogramReading, MetricName, MetricReading, NumberPoint, NumberReading } from './reading.ts'
import { other, type SeriesOptions, SeriesTable } from './series.ts'

export interface MetricDefinition extends Pick<SeriesOptions<unknown>, 'keep' | 'seriesMax'> {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

export interface CounterDefinition extends MetricDefinition {
  /** What is added is this many times smaller than what is shown: nano-dollars add up exactly, dollars do not. */
  readonly perUnit?: number
}

export interface HistogramDefinition extends MetricDefinition {
  readonly bounds: readonly number[]
}

/** undefined = there is nothing to say now. */
export type Asked = number | undefined | readonly NumberPoint[]

export interface AskedDefinition extends MetricDefinition {
  readonly type: 'counter' | 'gauge'
  /** What becomes of several values under the same labels. */
  readonly merge?: 'sum' | 'max'
  read(): Asked | Promise<Asked>
}

export type MetricInfo = MetricName & { readonly type: MetricReading['type'] }

export interface MetricRegistry {
  counter(definition: CounterDefinition): SeriesTable<Counter>
  histogram(definition: HistogramDefinition): SeriesTable<Histogram>
  /** A value that is asked for when somebody reads. */
  ask(definition: AskedDefinition): void
  infos(): readonly MetricInfo[]
  read(): Promise<readonly MetricReading[]>
  /** How often a value had to be counted as `other`, by metric. */
  folded(): readonly NumberPoint[]
  /** How often a value could not be had, by metric. */
  failures(): readonly NumberPoint[]
}

/** A database that hangs must not keep the other numbers back. */
const readMs = 2_000
const askedMax = 1_000
const noLabels: readonly string[] = []

interface Family {
  readonly info: MetricInfo
  read(): MetricReading | Promise<MetricReading>
  folded(): number
}

export function createRegistry(): MetricRegistry {
  const families: Family[] = []
  const failures = new Map<string, number>()

  async function readFamily(family: Family): Promise<readonly MetricReading[]> {
    try {
      const reading = family.read()
      return [reading instanceof Promise ? await withinTime(reading) : reading]
    } catch {
      const { name } = family.info
      failures.set(name, (failures.get(name) ?? 0) + 1)
      return []
    }
  }

  return {
    counter(definition) {
      const table = new SeriesTable({ ...definition, labels: definition.labels ?? noLabels, make: () => new Counter() })
      const { perUnit = 1 } = definition
      const info = infoOf(definition, 'counter')
      const read = (): NumberReading => ({
        ...info,
        points: table.all.map(({ values, cell }) => ({ values, value: cell.value / perUnit })),
      })
      families.push({ info, read, folded: () => table.folded })
      return table
    },
    histogram(definition) {
      const { bounds, labels = noLabels } = definition
      const table = new SeriesTable({ ...definition, labels, make: () => new Histogram(bounds) })
      const info = infoOf(definition, 'histogram')
      const read = (): HistogramReading => ({
        ...info,
        bounds,
        points: table.all.map(({ values, cell }) => ({ values, counts: [...cell.counts], sum: cell.sum })),
      })
      families.push({ info, read, folded: () => table.folded })
      return table
    },
    ask(definition) {
      const info = infoOf(definition, definition.type)
      let folded = 0
      const toReading = (asked: Asked): NumberReading => {
        const { points, foldedCount } = pointsOf(asked, definition)
        folded += foldedCount
        return { ...info, points }
      }
      const read = (): NumberReading | Promise<NumberReading> => {
        const asked = definition.read()
        return asked instanceof Promise ? asked.then(toReading) : toReading(asked)
      }
      families.push({ info, read, folded: () => folded })
    },
    infos: () => families.map(({ info }) => info),
    read: async () => (await Promise.all(families.map(readFamily))).flat(),
    folded: () =>
      families
        .filter((family) => family.folded() > 0)
        .map((family) => ({ values: [family.info.name], value: family.folded() })),
    failures: () => Array.from(failures, ([name, value]) => ({ values: [name], value })),
  }
}

function infoOf<Type extends MetricReading['type']>(
  { name, help, labels = noLabels }: MetricDefinition,
  type: Type,
): MetricName & { readonly type: Type } {
  return { name, help, labels, type }
}

/** Two points with the same labels would make a scraper refuse the whole page. */
function pointsOf(
  asked: Asked,
  { merge = 'sum', seriesMax = askedMax }: AskedDefinition,
): { readonly points: readonly NumberPoint[]; readonly foldedCount: number } {
  if (asked === undefined) return { points: [], foldedCount: 0 }
  if (typeof asked === 'number') return { points: [{ values: noLabels, value: asked }], foldedCount: 0 }
  const merged = new Map<string, NumberPoint>()
  let foldedCount = 0
  for (const { values, value } of asked) {
    const isFull = merged.size >= seriesMax && !merged.has(values.join('\0'))
    if (isFull) foldedCount++
    const shown = isFull ? values.map(() => other) : values
    const key = shown.join('\0')
    const known = merged.get(key)
    const together = known ? (merge === 'sum' ? known.value + value : Math.max(known.value, value)) : value
    merged.set(key, { values: shown, value: together })
  }
  return { points: [...merged.values()], foldedCount }
}

async function withinTime<Value>(promise: Promise<Value>): Promise<Value> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('took too long')), readMs)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
