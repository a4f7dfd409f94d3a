import { expect } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { expectBooksRight, holdOf, openFunded, settlementOf } from '../../test/parts/ledger.ts'

forEachEngine((_engine, storeTest) => {
  storeTest('parts of a standing hold need no free money, and add up to no more than it held', async ({ database }) => {
    await using books = await openFunded(database, 100n)
    const { ledger, workspaceId } = books
    const whole = holdOf(workspaceId, 60n)
    const wallet = async () => {
      const { posted, held } = await ledger.wallet(workspaceId)
      return [Number(posted), Number(held)]
    }
    expect((await ledger.hold({ ...whole, isStanding: true })).kind).toBe('held')
    expect((await ledger.hold(holdOf(workspaceId, 40n))).kind).toBe('held')
    expect(await wallet()).toEqual([100, 100])

    const [first, second, third] = [25n, 25n, 25n].map((amount) => holdOf(workspaceId, amount))
    if (!first || !second || !third) throw new Error('three of them')
    const taken = [first, second, third].map((request) => ledger.takePart(whole.requestId, request))
    // 25 + 25 + what is left.
    expect(await Promise.all(taken)).toEqual([25n, 25n, 10n].map((amount) => ({ kind: 'held', amount })) as never)
    expect(await ledger.standing(whole.requestId)).toBe(0n as never)
    expect(await wallet()).toEqual([100, 100])
    await expectBooksRight(database)

    expect(await ledger.settle(settlementOf(first.requestId, 20n))).toMatchObject({ kind: 'settled', charge: 20n })
    await ledger.release(second.requestId)
    // 5 of the first and 25 of the second are free: 4 of that pay what the third costs beyond its hold.
    expect(await ledger.settle(settlementOf(third.requestId, 14n))).toMatchObject({ kind: 'settled', charge: 14n })
    expect(await wallet()).toEqual([66, 40])
    expect((await ledger.endStanding(whole.requestId, workspaceId)).kind).toBe('released')
    expect(await ledger.takePart(whole.requestId, holdOf(workspaceId, 1n))).toEqual({ kind: 'gone' })
    expect(await ledger.standing(whole.requestId)).toBeUndefined()
    expect(await wallet()).toEqual([66, 40])
    await expectBooksRight(database)
  })

  storeTest('what is left of a standing hold is free at its end', async ({ database }) => {
    await using books = await openFunded(database, 100n)
    const { ledger, workspaceId } = books
    const whole = holdOf(workspaceId, 60n)
    await ledger.hold({ ...whole, isStanding: true })
    await ledger.reap()
    expect(await ledger.standing(whole.requestId)).toBe(60n as never)
    await ledger.endStanding(whole.requestId, workspaceId)
    expect(await ledger.wallet(workspaceId)).toEqual({ posted: 100n, held: 0n, available: 100n } as never)
    await expectBooksRight(database)
  })
})
