import { expect, test } from 'bun:test'
import { createTestClock } from '../../../test/parts/ledger.ts'
import { createGuessBrake } from './guess-brake.ts'

function openBrake() {
  const clock = createTestClock()
  const waiting: (() => void)[] = []
  const pauses: number[] = []
  const brake = createGuessBrake({
    clock,
    pause(milliseconds) {
      pauses.push(milliseconds)
      return new Promise((resolve) => waiting.push(resolve))
    },
  })
  return { clock, brake, waiting, pauses }
}

test('A10: the eleventh wrong token of an address within a minute is answered a second late', async () => {
  const { brake, clock, pauses } = openBrake()
  for (let wrong = 1; wrong <= 10; wrong++) await brake.afterWrong('a')
  await brake.afterWrong('b')
  expect(pauses).toEqual([])
  void brake.afterWrong('a')
  expect(pauses).toEqual([1000])
  clock.advance(60_000)
  void brake.afterWrong('b')
  expect(pauses).toEqual([1000])
})

test('A10: while 32 wrong ones wait, no more of that address are kept waiting, and others are', async () => {
  const { brake, waiting } = openBrake()
  for (let wrong = 1; wrong <= 10; wrong++) await brake.afterWrong('a')
  const answers = Array.from({ length: 31 }, () => brake.afterWrong('a'))
  expect(brake.admits('a')).toBe(true)
  answers.push(brake.afterWrong('a'))
  expect([brake.admits('a'), brake.admits('b')]).toEqual([false, true])
  for (const resolve of waiting) resolve()
  await Promise.all(answers)
  expect(brake.admits('a')).toBe(true)
})

test('ten thousand addresses are remembered, and the oldest goes first', async () => {
  const { brake, pauses } = openBrake()
  for (let wrong = 1; wrong <= 10; wrong++) await brake.afterWrong('first')
  for (let address = 0; address < 10_000; address++) await brake.afterWrong(`next-${address}`)
  await brake.afterWrong('first')
  expect(pauses).toEqual([])
})
