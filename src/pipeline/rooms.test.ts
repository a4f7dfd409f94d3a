import { expect, test } from 'bun:test'
import { createTestClock } from '../../test/parts/ledger.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { Cancellation, createTicker, type WaitingClient } from './deadline.ts'
import { Blocked, Rooms } from './rooms.ts'

const client: WaitingClient = {
  clientGone: new Cancellation(),
  connection: { keepOpen() {} },
}

function openRooms() {
  const clock = createTestClock()
  const ticker = createTicker(clock, () => {})
  const rooms = new Rooms(ticker)
  return { clock, rooms, ticker, [Symbol.dispose]: () => ticker.close() }
}

test('a workspace may wait in as many places as it leaves free, whatever its requests wait for', async () => {
  using opened = openRooms()
  const { rooms } = opened
  /** How many of so many more requests find a place. */
  const waitMore = async (workspaceId: WorkspaceId, count: number): Promise<number> => {
    let refused = 0
    for (let at = 0; at < count; at++) {
      const room = at % 2 === 0 ? workspaceId : (`key_${workspaceId} day:2026-11-18` as const)
      const blocked = new Blocked(room, 'refused', 1n as Nano)
      void rooms.wait({ workspaceId }, blocked, async () => blocked, client, 1_000_000).then(() => refused++)
    }
    await Bun.sleep(0)
    return count - refused
  }
  // Of 2,000: 1,000 leave 1,000.
  expect(await waitMore('ws_a', 1_500)).toBe(1_000)
  // 500 leave 500, so that a third one finds places too.
  expect(await waitMore('ws_b', 1_500)).toBe(500)
  expect(await waitMore('ws_a', 10)).toBe(0)
  expect(await waitMore('ws_c', 1_500)).toBe(250)
})

test('ten whose patience ends may pass one that needs more than is free, and no more', async () => {
  using opened = openRooms()
  const { clock, rooms } = opened
  const place = { workspaceId: 'ws_a' } as const
  const blocked = (needed: bigint) => new Blocked(place.workspaceId, 'refused', needed as Nano)
  const large = rooms.wait(place, blocked(100n), async () => blocked(100n), client, 10_000)
  const small = Array.from({ length: 12 }, () =>
    rooms.wait(place, blocked(1n), async ({ isLast }) => (isLast ? 'held' : blocked(1n)), client, 1_000),
  )
  // A later request leaves what the first of the line needs.
  expect(rooms.keptIn(place)?.get(place.workspaceId)).toBe(100n)
  clock.advance(1_000)
  const ends = await Promise.all(small)
  expect(ends).toEqual([...Array.from({ length: 10 }, () => 'held'), 'refused', 'refused'])
  clock.advance(9_000)
  expect(await large).toBe('refused')
  expect(rooms.keptIn(place)?.get(place.workspaceId)).toBeUndefined()
})

test('a hold that is granted while the gateway gives up its requests is not used', async () => {
  using opened = openRooms()
  const { clock, rooms, ticker } = opened
  const place = { workspaceId: 'ws_a' } as const
  const blocked = new Blocked<string>(place.workspaceId, 'refused', 1n as Nano)
  const trying = Promise.withResolvers<void>()
  const decided = Promise.withResolvers<string>()
  const attempt = () => {
    trying.resolve()
    return decided.promise
  }
  const waiting = rooms.wait(place, blocked, attempt, client, 1_000)
  clock.advance(1_000)
  await trying.promise
  ticker.expireAll()
  decided.resolve('held')
  expect(await waiting).toBe('refused')
})

test('a request whose patience is over does not wait for those before it, whose tries may each take long', async () => {
  using opened = openRooms()
  const { clock, rooms } = opened
  const place = { workspaceId: 'ws_a' } as const
  const blocked = new Blocked<string>(place.workspaceId, 'refused', 1n as Nano)
  const trying = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<string>()
  // A database that hangs.
  const attempt = () => {
    trying.resolve()
    return answer.promise
  }
  const first = rooms.wait(place, blocked, attempt, client, 1_000)
  const second = rooms.wait(place, blocked, async () => 'held', client, 1_000)
  clock.advance(1_000)
  await trying.promise
  clock.advance(2_000)
  expect(await Promise.race([second, Bun.sleep(20_000).then(() => 'still waits')])).toBe('refused')
  answer.resolve('held')
  expect(await first).toBe('held')
})
