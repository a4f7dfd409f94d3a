// The series of one metric, found by their label values. A known set of values costs a few lookups and allocates nothing;
// a new one is made, up to a number, and what comes beyond it is counted together under `other`.

/** Stands for every value that has no series of its own. */
export const other = 'other'

export interface Series<Cell> {
  /** In the order of the label names. */
  readonly values: readonly string[]
  readonly cell: Cell
}

export interface SeriesOptions<Cell> {
  /** At most five. */
  readonly labels: readonly string[]
  /** Labels with few values by nature, which keep theirs when the rest becomes `other`. */
  readonly keep?: readonly string[]
  readonly seriesMax?: number
  make(): Cell
}

/** Some 2,000 lines of text and 1 MB: more than any page shows, less than a scrape notices. */
const seriesMaxDefault = 2_000

class Node<Cell> {
  readonly children = new Map<string, Node<Cell>>()
  series: Series<Cell> | undefined
}

export class SeriesTable<Cell> {
  readonly all: Series<Cell>[] = []
  /** How often `other` was taken. */
  folded = 0
  readonly #root = new Node<Cell>()
  readonly #depth: number
  readonly #keeps: readonly boolean[]
  readonly #seriesMax: number
  readonly #make: () => Cell
  #otherCount = 0

  constructor({ labels, keep = [], seriesMax = seriesMaxDefault, make }: SeriesOptions<Cell>) {
    this.#depth = labels.length
    this.#keeps = labels.map((label) => keep.includes(label))
    this.#seriesMax = seriesMax
    this.#make = make
    // What has no labels is known from the start, and is 0 until something happens.
    if (labels.length === 0) this.find()
  }

  /** As many values as there are labels. Fixed parameters, since a list of them would be allocated for every request. */
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
