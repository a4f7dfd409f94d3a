import { expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type OfflinePlace, runOffline } from '../../test/parts/command-line.ts'
import { createThrowAwayFolder, forEachEngine } from '../../test/parts/engines.ts'
import { addWorkspace, holdOf, openLedger, settlementOf } from '../../test/parts/ledger.ts'
import type { Nano } from '../kernel/money.ts'
import { lockDataFolder } from '../store/folder-lock.ts'

const verify = (place: OfflinePlace, ...args: string[]) => runOffline(place, 'ledger', 'verify', ...args)

forEachEngine((engine, storeTest) => {
  storeTest('verifies correct books while a gateway is running, and writes nothing', async ({ database, place }) => {
    await using opened = await openLedger(database)
    const { ledger } = opened
    const workspaceId = await addWorkspace(database)
    await ledger.fund({ workspaceId, amount: 5_000_000_000n as Nano, kind: 'topup' })
    const hold = holdOf(workspaceId, 1_000_000n)
    await ledger.hold(hold)
    const lock = engine.name === 'sqlite' ? lockDataFolder(place.dataFolder) : undefined
    const file = join(place.dataFolder, 'tollgate.db')
    const state = () => (engine.name === 'sqlite' ? [readFileSync(file), statSync(file).mtimeMs] : [])
    const before = state()
    expect(await verify(place)).toEqual({
      exit: 0,
      out: 'The books are right: 1 wallet and 1 transfer; every charge was recomputed.\n',
      err: '',
    })
    expect(state()).toEqual(before)
    expect(JSON.parse((await verify(place, '--json')).out)).toEqual({
      ok: true,
      wallets: 1,
      transfers: 1,
      findings: [],
      warnings: [],
    })
    lock?.release()
  })

  storeTest(
    'warns about a clock set back by an hour without failing, also with later transfers',
    async ({ database, place }) => {
      let now = 1_800_000_000_000
      const clock = { now: () => now, monotonicMs: () => 0, advance: () => {}, set: () => {} }
      await using opened = await openLedger(database, {}, clock)
      const workspaceId = await addWorkspace(database)
      for (const stepMs of [0, -3_600_000, 1_000]) {
        now += stepMs
        await opened.ledger.fund({ workspaceId, amount: 5_000_000_000n as Nano, kind: 'topup' })
      }
      const ids = await database.sql<{ id: string }>`SELECT id FROM transfers ORDER BY id`
      const [first, second] = ids.map(({ id }) => id)
      const { exit, out, err } = await verify(place)
      expect([exit, out]).toEqual([0, 'The books are right: 1 wallet and 3 transfers; every charge was recomputed.\n'])
      // 1,800,000,000 s after 1970, less an hour.
      expect(err).toBe(
        `Warning: transfer ${second} was written at 2027-01-15T07:00:00.000Z, 3600 s earlier than ${first} before it: a clock was set back, or clocks of replicas differ. No amount depends on it.\n`,
      )
      const { ok, findings, warnings } = JSON.parse((await verify(place, '--json')).out)
      expect([ok, findings]).toEqual([true, []])
      expect(warnings).toMatchObject([{ check: 'ids and times ascend', id: second }])
      // Real damage is still an error beside it.
      await database.transaction((sql) => sql`UPDATE balances SET posted = posted + 7`)
      expect((await verify(place)).exit).toBe(1)
    },
  )

  storeTest(
    'names a balance that does not match its transfers, and a charge that does not match its usage',
    async ({ database, place }) => {
      await using opened = await openLedger(database)
      const { ledger } = opened
      const workspaceId = await addWorkspace(database)
      await ledger.fund({ workspaceId, amount: 5_000_000_000n as Nano, kind: 'topup' })
      const hold = holdOf(workspaceId, 1_000_000n)
      await ledger.hold(hold)
      // No price of this name was ever recorded, so the amount cannot be recomputed.
      const settled = await ledger.settle(settlementOf(hold.requestId, 500_000n, { priceVersion: 'acme/gone#1' }))
      expect(settled.kind).toBe('settled')
      await database.transaction((sql) => sql`UPDATE balances SET posted = posted + 7`)
      const { exit, out, err } = await verify(place, '--json')
      const error = { message: 'the books are wrong.', try: 'tollgate ledger verify --json', exit_code: 1 }
      expect([exit, JSON.parse(err)]).toEqual([1, { error }])
      const { ok, findings } = JSON.parse(out)
      expect(ok).toBe(false)
      const checks = findings.map(({ check }: { check: string }) => check)
      expect(checks).toEqual(['balance = Σ transfers', 'every price version exists', 'charge = price of the usage'])
      // 5 000 000 000 − 500 000 = 4 999 500 000, and seven too many.
      expect(findings[0].detail).toBe('posted 4999500007, transfers say 4999500000')
      expect((await verify(place)).out).toContain('posted 4999500007, transfers say 4999500000')
    },
  )
})

test('fails without a database', async () => {
  using folder = createThrowAwayFolder()
  const { exit, err } = await verify({ url: undefined, dataFolder: folder.path })
  expect(exit).toBe(1)
  expect(err).toMatch(/There is no database .*tollgate\.db\.\nTry: TOLLGATE_DATA=/)
})
