import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { type CallBudget, createRetryBudget } from './failover.ts'

function spendAll(budget: CallBudget): number {
  let spent = 0
  while (budget.spend()) spent++
  return spent
}

test('begins with fifty extra attempts', () => {
  const budget = createRetryBudget({ clock: createJumpClock() })
  expect(budget.level()).toBe(50)
  expect(spendAll(budget)).toBe(50)
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

test('if all fail at once, allows a fifth of the requests and fifty', () => {
  const budget = createRetryBudget({ clock: createJumpClock() })
  let extra = 0
  for (let n = 0; n < 1000; n++) {
    budget.earn()
    if (budget.spend()) extra++
  }
  expect(extra).toBe(250)
})

test('refills to fifty with time, two a second, and no further', () => {
  const clock = createJumpClock()
  const budget = createRetryBudget({ clock })
  spendAll(budget)
  clock.jump(0.4)
  expect(budget.spend()).toBe(false)
  clock.jump(0.1)
  expect(budget.level()).toBe(1)
  clock.jump(1000)
  expect(budget.level()).toBe(50)
})

test('lasts for one agent whose every request needs two retries', () => {
  const clock = createJumpClock()
  const budget = createRetryBudget({ clock })
  for (let n = 0; n < 1000; n++) {
    budget.earn()
    expect([budget.spend(), budget.spend()]).toEqual([true, true])
    clock.jump(1)
  }
})

test('allows a fifth of a hundred failing requests a second, and two a second', () => {
  const clock = createJumpClock()
  const budget = createRetryBudget({ clock })
  let extra = 0
  for (let second = 0; second < 60; second++) {
    for (let n = 0; n < 100; n++) {
      budget.earn()
      while (budget.spend()) extra++
    }
    clock.jump(1)
  }
  // The floor, a fifth of 6000, and two for each second that passed between two requests.
  expect(extra).toBe(50 + 1200 + 2 * 59)
})
