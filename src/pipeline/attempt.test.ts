import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { attempt, drain } from './attempt.ts'
import { createTicker, type Ticker } from './deadline.ts'
import type { Held } from './stages.ts'

test('does not mark a hold as sent if the client left before the call', async () => {
  let marks = 0
  const held = {
    exchange: { clientGone: AbortSignal.abort(), attempts: { begin: () => ({}), end() {} } },
    hold: { markSent: () => marks++ },
  } as unknown as Held
  const outcome = await attempt({} as never, held, {} as never, {} as never)
  expect([outcome, marks]).toEqual([expect.objectContaining({ class: 'client left' }), 0])
})

// ── Draining ──

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
  drain(rest, ticker)
  return { ticker, aborted: () => aborted, reads: () => reads }
}

const silence = new Promise<never>(() => {})

test('draining does not abort a connection that ends', async () => {
  const pieces: Piece[] = [{ done: false, value: new Uint8Array(2) }, { done: true }]
  const { aborted, reads, ticker } = start(async (n) => pieces[n] ?? { done: true })
  await Bun.sleep(0)
  ticker.close()
  expect([reads(), aborted()]).toEqual([2, 0])
})

test('draining aborts after 64 KiB', async () => {
  const { aborted, reads, ticker } = start(async () => ({ done: false, value: new Uint8Array(16 * 1024) }))
  await Bun.sleep(0)
  ticker.close()
  expect([reads(), aborted()]).toEqual([5, 1])
})

test('draining aborts after half a second of silence', async () => {
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

test('draining aborts when the gateway stops', async () => {
  const { aborted, ticker } = start(() => silence)
  ticker.close()
  expect(aborted()).toBe(1)
})
