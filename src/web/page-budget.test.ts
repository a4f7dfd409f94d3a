import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { createPageBudget } from './page-budget.ts'

test('strangers get a burst of two seconds, then a quarter of the time', () => {
  const clock = createJumpClock()
  const budget = createPageBudget(clock)
  const view = (seconds: number) => budget.spend(() => clock.jump(seconds))
  for (let views = 0; views < 15; views++) view(0.1)
  expect(budget.admits()).toBe(true)
  view(1.5)
  // A quarter of the time that passes is forgiven: 1500 − 375 + 1500 − 375 = 2250 ms, over the burst.
  expect(budget.admits()).toBe(false)
  clock.jump(4)
  expect(budget.admits()).toBe(true)
})

test('a page that fails to render is counted too', () => {
  const clock = createJumpClock()
  const budget = createPageBudget(clock)
  const fail = () => {
    clock.jump(3)
    throw new Error('no page')
  }
  expect(() => budget.spend(fail)).toThrow('no page')
  expect(budget.admits()).toBe(false)
})
