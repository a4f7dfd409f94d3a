// The steps of a batch put together by statement, each statement where it came first: the rows of a table go in with few
// statements, and what adds up is one step for each row, after everything else.

import type { SqlValue } from './sql.ts'
import type { WriteOperation, WriteStep } from './write-batch.ts'

export interface StepText {
  readonly text: string
  readonly row?: string | undefined
}

/** Steps with the same statement. */
export interface StepGroup<Also = never> {
  readonly statement: StepText
  readonly count: number
  /** Of all of them, one after the other. */
  readonly values: readonly (SqlValue | Also)[]
}

interface Growing extends StepGroup {
  count: number
  readonly values: SqlValue[]
}

interface Sum {
  readonly step: WriteStep
  amount: bigint
}

export function groupSteps(operations: readonly WriteOperation[]): Iterable<StepGroup> {
  const groups = new Map<string, Growing>()
  const sums = new Map<string, Sum>()
  for (const operation of operations) {
    for (const step of operation) {
      if (step.addsUp) addUp(sums, step)
      else put(groups, step, step.values)
    }
  }
  for (const { step, amount } of sums.values()) put(groups, step, [amount, ...step.values.slice(1)])
  return groups.values()
}

function addUp(sums: Map<string, Sum>, step: WriteStep): void {
  const { text, values } = step
  const amount = BigInt(values[0] ?? 0)
  let name = text
  for (let at = 1; at < values.length; at++) name += `\n${values[at]}`
  const sum = sums.get(name)
  if (sum) sum.amount += amount
  else sums.set(name, { step, amount })
}

function put(groups: Map<string, Growing>, { text, row }: StepText, values: readonly SqlValue[]): void {
  const alike = groups.get(text)
  if (!alike) {
    groups.set(text, { statement: { text, row }, count: 1, values: [...values] })
  } else if (alike.values.length === alike.count * values.length) {
    alike.count++
    for (const value of values) alike.values.push(value)
  } else {
    // A value too many would move into the next row; by itself it is refused.
    groups.set(`${text} ${groups.size}`, { statement: { text, row }, count: 1, values: [...values] })
  }
}
