import { expect, test } from 'bun:test'
import { createJumpClock } from '../../../test/parts/jump-clock.ts'
import { createRetryBudget, type RetryBudget } from './retry-budget.ts'

function spendAll(budget: RetryBudget): number {
  let spent = 0
  while (budget.spend()) spent++
  return spent
}

test('begins with three extra attempts', () => {
  const budget = createRetryBudget({ clock: createJumpClock() })
  expect(budget.level()).toBe(3)
  expect(spendAll(budget)).toBe(3)
  expect(budget.level()).toBe(0)
  expect(budget.refused()).toBe(1)
})

test('earns one extra attempt with every five requests', () => {
  const budget = createRetryBudget({ clock: createJumpClock() })
  spendAll(budget)
  for (let n = 0; n < 4; n++) budget.earn()
  expect(budget.spend()).toBe(false)
  budget.earn()
  expect(budget.level()).toBe(1)
  expect(spendAll(budget)).toBe(1)
})

test('holds no more than a hundred', () => {
  const budget = createRetryBudget({ clock: createJumpClock() })
  for (let n = 0; n < 10_000; n++) budget.earn()
  expect(budget.level()).toBe(100)
  expect(spendAll(budget)).toBe(100)
})

test('when all fail at once, a fifth of the requests and three are tried again', () => {
  const budget = createRetryBudget({ clock: createJumpClock() })
  let extra = 0
  for (let n = 0; n < 1000; n++) {
    budget.earn()
    if (budget.spend()) extra++
  }
  expect(extra).toBe(203)
})

test('comes back to three with time, one in ten seconds, and no further', () => {
  const clock = createJumpClock()
  const budget = createRetryBudget({ clock })
  spendAll(budget)
  clock.jump(9)
  expect(budget.spend()).toBe(false)
  clock.jump(1)
  expect(budget.level()).toBe(1)
  clock.jump(1000)
  expect(budget.level()).toBe(3)
})
