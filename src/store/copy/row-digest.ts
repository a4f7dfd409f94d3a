// A digest of many rows that does not depend on their order or on the engine they came from: two tables with the same
// digest and count hold the same rows. It knows the two kinds of values that portable SQL has, and no table.

import { createHash } from 'node:crypto'
import type { SqlValue } from '../sql.ts'

export type Row = Readonly<Record<string, SqlValue>>

/** A sum of 256-bit hashes; what is carried over is dropped. */
const modulus = 1n << 256n

export class RowDigest {
  #sum = 0n
  #count = 0n

  /** The columns give the order of the values, which the two engines need not share. */
  constructor(private readonly columns: readonly string[]) {}

  add(row: Row): void {
    const hash = createHash('sha256')
    for (const column of this.columns) hash.update(encode(row[column]))
    // A sum, not an exclusive or: there a row that came twice would vanish.
    this.#sum = (this.#sum + BigInt(`0x${hash.digest('hex')}`)) % modulus
    this.#count += 1n
  }

  get count(): bigint {
    return this.#count
  }

  get text(): string {
    return this.#sum.toString(16).padStart(64, '0')
  }
}

/** With its kind and length in front, so that no two rows have the same text. */
function encode(value: SqlValue | undefined): string {
  if (value === null) return 'n;'
  if (typeof value === 'bigint') return `i${value};`
  if (typeof value === 'string') return `s${value.length}:${value};`
  // A fraction or bytes: no column of ours has them, and an engine could hand them out differently.
  throw new TypeError(`a value of type ${typeof value} cannot be compared between engines`)
}
