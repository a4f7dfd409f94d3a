import { afterEach, expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { createTicker, type Ticker, type Watched } from './ticker.ts'

let ticker: Ticker | undefined
afterEach(() => ticker?.close())

function unexpected(error: unknown): never {
  throw error
}

interface Seen extends Watched {
  readonly ticks: number[]
}

function seeing(): Seen {
  const ticks: number[] = []
  return { seat: -1, ticks, tick: (nowMs) => void ticks.push(nowMs) }
}

test('who begins between two ticks begins now, not at the last tick', () => {
  const clock = createJumpClock()
  ticker = createTicker(clock, unexpected)
  clock.jump(50)
  ticker.watch(seeing())
  expect(ticker.nowMs).toBe(50_000)
})

test('after a pause of the process everybody is heard before anybody is judged', async () => {
  const clock = createJumpClock()
  let looks = 0
  ticker = createTicker(
    {
      now: clock.now,
      monotonicMs() {
        looks++
        return clock.monotonicMs()
      },
    },
    unexpected,
  )
  const judgedAtLook: number[] = []
  ticker.watch({ seat: -1, tick: () => void judgedAtLook.push(looks) })
  while (judgedAtLook.length === 0) await Bun.sleep(5)
  // From here to the next tick nobody else has a turn.
  judgedAtLook.length = 0
  looks = 0
  clock.jump(61)
  while (judgedAtLook.length === 0) await Bun.sleep(5)
  // The first look only takes note of the time: bytes that came in the pause are read after it.
  expect(judgedAtLook[0]).toBe(2)
})

test('a process that is paused again and again still judges', async () => {
  const clock = createJumpClock()
  ticker = createTicker(clock, unexpected)
  const seen = seeing()
  ticker.watch(seen)
  while (seen.ticks.length < 3) {
    clock.jump(2)
    await Bun.sleep(20)
  }
  expect(seen.ticks.every((ms) => ms >= 2000)).toBe(true)
})

test('one that leaves while it is asked leaves nobody out', async () => {
  ticker = createTicker(createJumpClock(), unexpected)
  const all = [seeing(), seeing(), seeing()] as const
  const leaver: Watched = { seat: -1, tick: () => ticker?.unwatch(leaver) }
  for (const watched of [all[0], leaver, all[1], all[2]]) ticker.watch(watched)
  while (leaver.seat !== -1) await Bun.sleep(5)
  const asked = all.map(({ ticks }) => ticks.length)
  expect(Math.min(...asked)).toBeGreaterThan(0)
  expect(Math.max(...asked)).toBe(Math.min(...asked))
})

test('one that cannot be asked takes nobody with it, and is told', async () => {
  const told: unknown[] = []
  ticker = createTicker(createJumpClock(), (error) => void told.push(error))
  const seen = seeing()
  const broken: Watched = {
    seat: -1,
    tick() {
      ticker?.unwatch(broken)
      throw new Error('closed already')
    },
  }
  for (const watched of [seen, broken]) ticker.watch(watched)
  while (seen.ticks.length === 0) await Bun.sleep(5)
  expect(told).toEqual([new Error('closed already')])
})
