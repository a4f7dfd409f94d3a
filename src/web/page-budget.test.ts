import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { createPageBudget } from './page-budget.ts'

test('visitors get a burst of two seconds, then a quarter of the time; users are always served', async () => {
  const clock = createJumpClock()
  const budget = createPageBudget(clock)
  const view = (seconds: number) =>
    budget.spend(() => {
      clock.jump(seconds)
      return 'page'
    })
  for (let views = 0; views < 15; views++) await view(0.1)
  expect(await view(1.5)).toBe('page')
  // A quarter of the time that passes is forgiven: 1500 − 375 + 1500 − 375 = 2250 ms, over the burst.
  expect(await view(0)).toBeUndefined()
  expect(await budget.spendFreely(() => 'page')).toBe('page')
  clock.jump(4)
  expect(await view(0)).toBe('page')
})

test('a page that fails to render is counted and does not block the queue', async () => {
  const clock = createJumpClock()
  const budget = createPageBudget(clock)
  const fail = () => {
    clock.jump(3)
    throw new Error('no page')
  }
  expect(budget.spend(fail)).rejects.toThrow('no page')
  expect(await budget.spend(() => 'page')).toBeUndefined()
})

test('concurrent pages are rendered one by one, with a yield between them', async () => {
  const budget = createPageBudget(createJumpClock())
  const seen: string[] = []
  const others = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) {
      await new Promise((resolve) => setImmediate(resolve))
      seen.push('others')
    }
  }
  const pages = ['a', 'b', 'c'].map((name) => budget.spend(() => seen.push(name)))
  await Promise.all([others(), ...pages])
  expect(seen.join(' ')).toBe('a others b others c others')
})

test('concurrent visitors are refused at their turn', async () => {
  const clock = createJumpClock()
  const budget = createPageBudget(clock)
  const views = Array.from({ length: 10 }, () =>
    budget.spend(() => {
      clock.jump(1)
      return 'page'
    }),
  )
  // 750 ms of each second stay counted, and the burst is 2,000 ms.
  expect(await Promise.all(views)).toEqual([...Array<string>(3).fill('page'), ...Array<undefined>(7).fill(undefined)])
})

test('a flood of visitors delays users by one page, and the queues alternate', async () => {
  const budget = createPageBudget(createJumpClock())
  const seen: string[] = []
  const visitors = Array.from({ length: 20 }, (_, at) => budget.spend(() => seen.push(`v${at}`)))
  await visitors[1]
  const users = ['console', 'requests'].map((name) => budget.spendFreely(() => seen.push(name)))
  await Promise.all([...users, ...visitors])
  expect(seen.slice(0, 6)).toEqual(['v0', 'v1', 'console', 'v2', 'requests', 'v3'])
  expect(seen).toHaveLength(22)
})

test('users do not spend the visitors’ budget, and started work is finished', async () => {
  const clock = createJumpClock()
  const budget = createPageBudget(clock)
  await budget.spendFreely(() => clock.jump(60))
  expect(await budget.spend(() => 'page')).toBe('page')
  await budget.finish(() => clock.jump(4))
  expect(await budget.spend(() => 'page')).toBeUndefined()
  expect(await budget.finish(() => 'rest')).toBe('rest')
})

test('the queue does not wait for what a page awaits', async () => {
  const budget = createPageBudget(createJumpClock())
  const database = Promise.withResolvers<string>()
  const slow = budget.spend(() => database.promise)
  expect(await budget.spend(() => 'page')).toBe('page')
  database.resolve('late page')
  expect(await slow).toBe('late page')
})
