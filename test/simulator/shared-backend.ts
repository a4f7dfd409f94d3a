// The store of a world of replicas: a separate database on a private PostgreSQL, copied from one that was migrated once.
// The balances are recomputed after every single commit.

import { SQL } from 'bun'
import { systemClock } from '../../src/kernel/clock.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { sharedPostgres } from '../parts/postgres.ts'
import { type Backend, type BookRows, bookQueries, givenPlan } from './backend.ts'
import type { Scheduler, Turns } from './scheduler.ts'
import { openSharedStore } from './shared-store.ts'
import { StatementTurns } from './statement-turns.ts'

const slots = [0, 1, 2]

interface Template {
  readonly admin: SQL
  readonly url: string
  copies: number
}

let template: Promise<Template> | undefined

async function migratedTemplate(): Promise<Template> {
  const url = await (await sharedPostgres()).createDatabase()
  const database = await openDatabase({ url, dataFolder: '' })
  await migrate({ database, clock: systemClock })
  await database.close()
  const admin = new SQL({ adapter: 'postgres', url: url.replace(/[^/]*$/, 'postgres'), max: 2 })
  return { admin, url, copies: 0 }
}

const wrongBalances = `SELECT account_id, posted, held, expected, holds FROM (SELECT account_id, posted, held,
    (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM transfers WHERE credit_account = account_id)
    - (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM transfers WHERE debit_account = account_id) AS expected,
    (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM holds WHERE wallet_id = account_id AND state = 'open') AS holds
    FROM balances) AS sums WHERE posted <> expected OR posted < held OR held <> holds`

export async function sharedBackend(scheduler: Scheduler): Promise<Backend> {
  template ??= migratedTemplate()
  const made = await template
  const { admin } = made
  const source = made.url.split('/').at(-1)
  const name = `world_${++made.copies}`
  await admin.unsafe(`CREATE DATABASE ${name} TEMPLATE ${source}`)
  const url = made.url.replace(/[^/]*$/, name)
  const reals = await Promise.all(slots.map(() => openDatabase({ url, dataFolder: '' })))
  // Compiling the sums, which the planner takes for costly, would take a hundred times as long as adding them up.
  const books = new SQL({ adapter: 'postgres', url, max: 1, bigint: true, connection: { jit: 'off' } })
  const turns = new StatementTurns(admin)
  const deaths = new Map<Turns, () => void>()
  scheduler.settleReal = () => turns.settle()

  const checkBalances = async () => {
    const [wrong]: { account_id: string; posted: bigint; held: bigint; expected: bigint; holds: bigint }[] =
      await books.unsafe(wrongBalances)
    backend.onCommit(
      wrong &&
        `M1: ${wrong.account_id} has posted ${wrong.posted} and held ${wrong.held}, its transfers say ${wrong.expected}, its holds ${wrong.holds}`,
    )
  }
  const backend: Backend = {
    openStore(owner, faults, slot) {
      const real = reals[slot]
      if (!real) throw new Error(`there is no slot ${slot}`)
      const { promise: death, reject } = Promise.withResolvers<never>()
      death.catch(() => {})
      deaths.set(owner, () => reject(new Error('the process died')))
      return openSharedStore({ scheduler, real, turns, faults, owner, onCommit: checkBalances, death })
    },
    async cut(owner) {
      deaths.get(owner)?.()
      await new Promise((resolve) => setImmediate(resolve))
      await turns.settle()
    },
    async readBooks() {
      const rows = await Promise.all(
        Object.entries(bookQueries).map(async ([key, text]) => [key, await books.unsafe(text)]),
      )
      return Object.fromEntries(rows) as BookRows
    },
    async addWorkspaces(ids) {
      for (const id of ids) await books`INSERT INTO workspaces (id, name, created_at) VALUES (${id}, 'simulated', 0)`
    },
    async givePlan(ids, credit) {
      for (const text of [givenPlan.offer(credit), ...ids.map(givenPlan.give)]) await books.unsafe(text)
    },
    isDurable: () => undefined,
    onCommit: () => {},
    async close() {
      for (const end of deaths.values()) end()
      await Promise.all([...reals.map((real) => real.close()), books.close()])
      await admin.unsafe(`DROP DATABASE ${name} WITH (FORCE)`)
    },
  }
  return backend
}
