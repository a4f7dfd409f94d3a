// A batch on its way to the thread that writes, as two texts: copying a string between threads costs half of what copying
// its objects does, and text that is put end to end needs no quotes to be made, escaped and read. Statements are sent in
// full once and by number from then on. Nothing here runs them.

import type { SqlValue } from './sql.ts'
import type { StepGroup, StepText } from './step-groups.ts'

export interface BatchMessage {
  readonly kind: 'batch'
  /** SentBatch as JSON. */
  readonly shape: string
  /** All values that are text, end to end. */
  readonly text: string
}

interface SentBatch {
  /** Statements that were not sent before; they have the next numbers. */
  readonly statements: readonly StepText[]
  readonly groups: readonly SentGroup[]
}

/** The statement's number, how often it is meant, and the values. */
type SentGroup = readonly [number, number, readonly SentValue[]]

/** Of a text -1 - its length; an integer as it is, or as a list with its digits if it is negative or too large for a number. */
type SentValue = number | null | readonly [string]

export class BatchEncoder {
  readonly #numbers = new Map<string, number>()

  encode(groups: Iterable<StepGroup>): BatchMessage {
    const statements: StepText[] = []
    const sent: SentGroup[] = []
    const texts: string[] = []
    for (const { statement, count, values } of groups) {
      const number = this.#numbers.get(statement.text) ?? this.#number(statement, statements)
      sent.push([number, count, values.map((value) => sentValue(value, texts))])
    }
    const batch: SentBatch = { statements, groups: sent }
    return { kind: 'batch', shape: JSON.stringify(batch), text: texts.join('') }
  }

  #number({ text, row }: StepText, statements: StepText[]): number {
    const number = this.#numbers.size
    this.#numbers.set(text, number)
    statements.push(row === undefined ? { text } : { text, row })
    return number
  }
}

function sentValue(value: SqlValue, texts: string[]): SentValue {
  if (typeof value === 'string') {
    texts.push(value)
    return -1 - value.length
  }
  if (value === null) return null
  const number = Number(value)
  return number >= 0 && Number.isSafeInteger(number) ? number : [String(value)]
}

export class BatchDecoder {
  readonly #statements: StepText[] = []

  decode({ shape, text }: BatchMessage): readonly StepGroup<number>[] {
    const { statements, groups } = JSON.parse(shape) as SentBatch
    this.#statements.push(...statements)
    const received: StepGroup<number>[] = []
    let from = 0
    for (const [number, count, sent] of groups) {
      const statement = this.#statements[number]
      if (statement === undefined) throw new Error(`statement ${number} was never sent`)
      const values: (SqlValue | number)[] = []
      for (const value of sent) {
        if (typeof value === 'number' && value < 0) {
          const end = from - 1 - value
          values.push(text.slice(from, end))
          from = end
        } else {
          // SQLite's binding takes a whole number for the integer that it is.
          values.push(typeof value === 'object' && value !== null ? BigInt(value[0]) : value)
        }
      }
      received.push({ statement, count, values })
    }
    return received
  }
}
