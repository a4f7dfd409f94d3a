import { expect, test } from 'bun:test'
import type { Usage } from '../kernel/usage.ts'
import { billedUsage, type Ending, type SettlementFacts } from './settlement.ts'

// Which usage is billed for each ending; what a client sees of it is in test/money.

const whole: Usage = {
  inputTokens: 7,
  cacheReadTokens: 3,
  cacheWriteTokens: 0,
  cacheWriteLongTokens: 0,
  outputTokens: 9,
  source: 'reported',
}
const passed: Usage = { ...whole, outputTokens: 4, source: 'estimated' }
const inputAlone: Usage = { ...passed, outputTokens: 0 }

function facts(more: Partial<SettlementFacts>): SettlementFacts {
  return { usage: undefined, outputBytes: 0, billsOnCancel: false, delivered: () => passed, ...more }
}

interface Row {
  readonly ending: Ending
  readonly afterOutput: Usage | undefined
  readonly beforeOutput: Usage | undefined
  /** At a provider that bills calls that are cancelled. */
  readonly beforeOutputBilled: Usage | undefined
}

const rows: readonly Row[] = [
  { ending: 'complete', afterOutput: whole, beforeOutput: whole, beforeOutputBilled: whole },
  { ending: 'not served', afterOutput: undefined, beforeOutput: undefined, beforeOutputBilled: undefined },
  {
    ending: 'client left before content',
    afterOutput: undefined,
    beforeOutput: undefined,
    beforeOutputBilled: inputAlone,
  },
  { ending: 'client left after content', afterOutput: passed, beforeOutput: undefined, beforeOutputBilled: inputAlone },
  { ending: 'interrupted', afterOutput: passed, beforeOutput: undefined, beforeOutputBilled: undefined },
  { ending: 'out of money', afterOutput: passed, beforeOutput: undefined, beforeOutputBilled: undefined },
  { ending: 'ended by us', afterOutput: passed, beforeOutput: undefined, beforeOutputBilled: inputAlone },
]

test.each([...rows])('$ending', ({ ending, afterOutput, beforeOutput, beforeOutputBilled }) => {
  const usage = ending === 'complete' ? whole : undefined
  expect(billedUsage(ending, facts({ usage, outputBytes: 16 }))).toEqual(afterOutput)
  expect(billedUsage(ending, facts({ usage }))).toEqual(beforeOutput)
  expect(billedUsage(ending, facts({ usage, billsOnCancel: true }))).toEqual(beforeOutputBilled)
})

test('a complete answer of which nobody knows the usage is billed by what passed', () => {
  expect(billedUsage('complete', facts({ outputBytes: 16 }))).toEqual(passed)
})

test.each(['client left after content', 'interrupted', 'out of money', 'ended by us'] as const)(
  '%s: what was counted and told is billed, also where it had nothing to show',
  (ending) => {
    expect(billedUsage(ending, facts({ usage: whole, delivered: () => whole }))).toBe(whole)
  },
)
