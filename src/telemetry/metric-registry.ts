// The metrics of the process: counted as things happen, or asked for when they are read. A read never fails as a whole:
// a value that cannot be read is left out and counted.

export interface MetricName {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
}

export interface NumberPoint {
  /** In the order of the label names. */
  readonly values: readonly string[]
  readonly value: number
}

export interface HistogramPoint {
  readonly values: readonly string[]
  /** One more than there are bounds; each bucket by itself, not cumulative. */
  readonly counts: readonly number[]
  readonly sum: number
}

export interface NumberReading extends MetricName {
  readonly type: 'counter' | 'gauge'
  readonly points: readonly NumberPoint[]
}

export interface HistogramReading extends MetricName {
  readonly type: 'histogram'
  readonly bounds: readonly number[]
  readonly points: readonly HistogramPoint[]
}

export type MetricReading = NumberReading | HistogramReading
export type MetricInfo = MetricName & { readonly type: MetricReading['type'] }

export interface MetricDefinition {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
  /** Labels with few values by nature, which keep theirs when the others become `other`. */
  readonly keep?: readonly string[]
  readonly seriesMax?: number
}

export interface CounterDefinition extends MetricDefinition {
  /** Divides the sum when it is read: nano-dollars add up exactly, dollars do not. */
  readonly perUnit?: number
}

export interface HistogramDefinition extends MetricDefinition {
  /** Upper bounds, ascending; the last bucket has none. */
  readonly bounds: readonly number[]
}

/** undefined = no value now. */
export type Asked = number | undefined | readonly NumberPoint[]

export interface AskedDefinition extends MetricDefinition {
  readonly type: 'counter' | 'gauge'
  /** How values under the same labels are combined. */
  readonly merge?: 'sum' | 'max'
  read(): Asked | Promise<Asked>
}

export interface MetricRegistry {
  counter(definition: CounterDefinition): SeriesTable<Counter>
  histogram(definition: HistogramDefinition): SeriesTable<Histogram>
  /** A value that is computed at every read. */
  ask(definition: AskedDefinition): void
  infos(): readonly MetricInfo[]
  read(): Promise<readonly MetricReading[]>
  /** How often a value was counted as `other`, by metric. */
  folded(): readonly NumberPoint[]
  /** How often a value could not be read, by metric. */
  failures(): readonly NumberPoint[]
}

/** A database that hangs must not hold up the other numbers. */
const readTimeoutMs = 2_000
const askedSeriesMax = 1_000
/** Some 2,000 lines of text and 1 MB: more than any page shows, less than a scrape notices. */
const seriesMaxDefault = 2_000
const noLabels: readonly string[] = []

/** The label value for everything beyond the maximum of series. */
export const other = 'other'

export function createRegistry(): MetricRegistry {
  const families: { info: MetricInfo; read(): MetricReading | Promise<MetricReading>; folded(): number }[] = []
  const failures = new Map<string, number>()

  async function readFamily(family: (typeof families)[number]): Promise<readonly MetricReading[]> {
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
      const table = new SeriesTable(definition, () => new Counter())
      const { perUnit = 1 } = definition
      const info = infoOf(definition, 'counter')
      const read = () => {
        return { ...info, points: table.all.map(({ values, cell }) => ({ values, value: cell.value / perUnit })) }
      }
      families.push({ info, read, folded: () => table.folded })
      return table
    },
    histogram(definition) {
      const { bounds } = definition
      const table = new SeriesTable(definition, () => new Histogram(bounds))
      const info = infoOf(definition, 'histogram')
      const read = () => {
        const points = table.all.map(({ values, cell }) => ({ values, counts: [...cell.counts], sum: cell.sum }))
        return { ...info, bounds, points }
      }
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
      const read = () => {
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

function infoOf<Type extends MetricReading['type']>(definition: MetricDefinition, type: Type) {
  const { name, help, labels = noLabels } = definition
  return { name, help, labels, type }
}

/** Two points with the same labels would make a scraper reject the whole page. */
function pointsOf(
  asked: Asked,
  { merge = 'sum', seriesMax = askedSeriesMax }: AskedDefinition,
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
  const timer = setTimeout(() => late.reject(new Error('took too long')), readTimeoutMs)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

export class Counter {
  value = 0

  add(amount: number): void {
    this.value += amount
  }
}

export class Histogram {
  readonly counts: number[]
  sum = 0

  constructor(readonly bounds: readonly number[]) {
    this.counts = new Array(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let at = 0
    // A bound belongs to its own bucket: `le` is "less or equal".
    while (at < this.bounds.length && value > (this.bounds[at] ?? 0)) at++
    this.counts[at] = (this.counts[at] ?? 0) + 1
    this.sum += value
  }
}

export interface Series<Cell> {
  readonly values: readonly string[]
  readonly cell: Cell
}

class Node<Cell> {
  readonly children = new Map<string, Node<Cell>>()
  series: Series<Cell> | undefined
}

/**
 * The series of one metric by their label values, at most five. A known set of values costs a few lookups and allocates
 * nothing; new ones are added up to a maximum, and the rest is counted together as `other`.
 */
export class SeriesTable<Cell> {
  readonly all: Series<Cell>[] = []
  /** How often `other` was used. */
  folded = 0
  readonly #root = new Node<Cell>()
  readonly #depth: number
  readonly #keeps: readonly boolean[]
  readonly #seriesMax: number
  readonly #make: () => Cell
  #otherCount = 0

  constructor(
    {
      labels = noLabels,
      keep = noLabels,
      seriesMax = seriesMaxDefault,
    }: Pick<MetricDefinition, 'labels' | 'keep' | 'seriesMax'>,
    make: () => Cell,
  ) {
    this.#depth = labels.length
    this.#keeps = labels.map((label) => keep.includes(label))
    this.#seriesMax = seriesMax
    this.#make = make
    // A metric without labels exists from the start, with 0.
    if (labels.length === 0) this.find()
  }

  /** As many values as there are labels. Fixed parameters, because a rest parameter would allocate at every request. */
  find(a = '', b = '', c = '', d = '', e = ''): Cell {
    const depth = this.#depth
    let node: Node<Cell> | undefined = this.#root
    if (depth > 0) node = node.children.get(a)
    if (depth > 1) node = node?.children.get(b)
    if (depth > 2) node = node?.children.get(c)
    if (depth > 3) node = node?.children.get(d)
    if (depth > 4) node = node?.children.get(e)
    return node?.series?.cell ?? this.#add([a, b, c, d, e].slice(0, depth))
  }

  #add(values: readonly string[]): Cell {
    const isFull = this.all.length - this.#otherCount >= this.#seriesMax
    if (!isFull) return this.#seriesAt(values).cell
    this.folded++
    const before = this.all.length
    const { cell } = this.#seriesAt(values.map((value, at) => (this.#keeps[at] ? value : other)))
    this.#otherCount += this.all.length - before
    return cell
  }

  #seriesAt(values: readonly string[]): Series<Cell> {
    let node = this.#root
    for (const value of values) {
      const child = node.children.get(value) ?? new Node<Cell>()
      node.children.set(value, child)
      node = child
    }
    if (!node.series) {
      node.series = { values, cell: this.#make() }
      this.all.push(node.series)
    }
    return node.series
  }
}
