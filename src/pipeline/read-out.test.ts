import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { readOut } from './read-out.ts'
import { createTicker, type Ticker } from './ticker.ts'

interface Scene {
  readonly ticker: Ticker
  readonly aborted: () => number
  readonly reads: () => number
}

type Piece = { readonly done: boolean; readonly value?: Uint8Array }

function start(next: (n: number) => Promise<Piece>, clock = createJumpClock()): Scene {
  const ticker = createTicker(clock, (error) => {
    throw error
  })
  let aborted = 0
  let reads = 0
  const cut = Promise.withResolvers<Piece>()
  cut.promise.catch(() => {})
  const rest = {
    reader: { read: () => Promise.race([next(reads++), cut.promise]) },
    abort() {
      aborted++
      cut.reject(new Error('cut'))
    },
  }
  readOut(rest, ticker)
  return { ticker, aborted: () => aborted, reads: () => reads }
}

const silence = new Promise<never>(() => {})

test('an end that comes leaves the connection alone', async () => {
  const pieces: Piece[] = [{ done: false, value: new Uint8Array(2) }, { done: true }]
  const { aborted, reads, ticker } = start(async (n) => pieces[n] ?? { done: true })
  await Bun.sleep(0)
  ticker.close()
  expect([reads(), aborted()]).toEqual([2, 0])
})

test('whoever goes on is cut off after 64 KiB', async () => {
  const { aborted, reads, ticker } = start(async () => ({ done: false, value: new Uint8Array(16 * 1024) }))
  await Bun.sleep(0)
  ticker.close()
  expect([reads(), aborted()]).toEqual([5, 1])
})

test('whoever stays silent is cut off after half a second', async () => {
  const clock = createJumpClock()
  const { aborted, ticker } = start(() => silence, clock)
  clock.jump(0.4)
  await Bun.sleep(150)
  expect(aborted()).toBe(0)
  clock.jump(0.2)
  await Bun.sleep(150)
  expect(aborted()).toBe(1)
  ticker.close()
})

test('a gateway that stops does not wait for it', async () => {
  const { aborted, ticker } = start(() => silence)
  ticker.close()
  expect(aborted()).toBe(1)
})
