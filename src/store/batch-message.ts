// A batch on its way to the thread that writes, as one JSON text: copying one string between threads costs half of what
// copying its objects does. Statements are sent in full once and by number from then on. Nothing here runs them.

import type { SqlValue } from './sql.ts'
import type { WriteOperation, WriteStep } from './write-batch.ts'

export interface BatchMessage {
  readonly kind: 'batch'
  /** Statements that were not sent before; they have the next numbers. */
  readonly texts: readonly string[]
  /** SentOperation[] */
  readonly operations: string
}

/** An integer within 32 bits as a number, a larger one as a list with its digits. */
type SentValue = string | number | null | readonly [string]

/** The statement's number, its values, and 1 if it may be added up with others. */
type SentStep = readonly [number, readonly SentValue[], (0 | 1)?]

export class BatchEncoder {
  readonly #numbers = new Map<string, number>()

  encode(operations: readonly WriteOperation[]): BatchMessage {
    const texts: string[] = []
    const sent = operations.map((operation) => operation.map((step) => this.#sent(step, texts)))
    return { kind: 'batch', texts, operations: JSON.stringify(sent) }
  }

  #sent({ text, values, addsUp }: WriteStep, texts: string[]): SentStep {
    const number = this.#numbers.get(text) ?? this.#number(text, texts)
    const sent: SentValue[] = []
    for (const value of values) sent.push(typeof value === 'bigint' ? sentInteger(value) : value)
    return addsUp ? [number, sent, 1] : [number, sent]
  }

  #number(text: string, texts: string[]): number {
    const number = this.#numbers.size
    this.#numbers.set(text, number)
    texts.push(text)
    return number
  }
}

/** SQLite's binding takes a small number for an integer and a large one for a float, which is never meant. */
function sentInteger(value: bigint): SentValue {
  const number = Number(value)
  return number === (number | 0) ? number : [String(value)]
}

export class BatchDecoder {
  readonly #texts: string[] = []

  decode({ texts, operations }: BatchMessage): readonly WriteOperation<number>[] {
    this.#texts.push(...texts)
    const sent = JSON.parse(operations) as readonly (readonly SentStep[])[]
    return sent.map((operation) => operation.map((step) => this.#received(step)))
  }

  #received([number, values, addsUp]: SentStep): WriteStep<number> {
    const text = this.#texts[number]
    if (text === undefined) throw new Error(`statement ${number} was never sent`)
    const received: (SqlValue | number)[] = []
    for (const value of values) received.push(typeof value === 'object' && value !== null ? BigInt(value[0]) : value)
    return addsUp === 1 ? { text, values: received, addsUp: true } : { text, values: received }
  }
}
