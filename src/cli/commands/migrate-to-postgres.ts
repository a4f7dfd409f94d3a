// `tollgate migrate-to-postgres`: copies the embedded database to PostgreSQL while no gateway is running. It recomputes the
// books on both sides and compares them, and never leaves two databases that a gateway could start on.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isoTime } from '../../kernel/clock.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import {
  type CopyOutcome,
  type CopyProgress,
  copyDatabase,
  openCopyTarget,
  shownTarget,
} from '../../store/copy-database.ts'
import { openDataFolder } from '../../store/data-folder.ts'
import type { Database } from '../../store/database.ts'
import { lockDataFolder, writeFence } from '../../store/folder-lock.ts'
import { StartRefusal } from '../../store/start-refusal.ts'
import { type CommandContext, type CommandDefinition, printResult } from '../command.ts'
import { openReadOnly, orRefuse, verifyBooks, withDatabase } from '../read-only-database.ts'
import { exitCodes, Refusal, usageRefusal } from '../refusal.ts'
import { shownCount } from '../values.ts'

export const migrateToPostgresCommand: CommandDefinition = {
  words: ['migrate-to-postgres'],
  isOffline: true,
  summary: 'copies the embedded database to PostgreSQL, verifies the copy, and locks the old one',
  details: `Stop the gateway first. The target must be an empty database. Every balance is recomputed from the transfers on both
sides, and every row is compared; if anything differs, nothing is committed. If it is interrupted, it starts over the next
time. At the end the data folder is marked, so that no gateway uses the old database again.
The folder's files "secret" and "admin-token" are not in any database: keep them, or set TOLLGATE_SECRET.`,
  options: { to: { value: 'URL', help: 'postgres://USER:PASSWORD@HOST/DATABASE; otherwise DATABASE_URL' } },
  examples: [
    'DATABASE_URL=postgres://… tollgate migrate-to-postgres',
    'tollgate migrate-to-postgres --to postgres://tollgate@db.internal/tollgate',
  ],
  async run(context) {
    const url = context.text('to') ?? context.settings.databaseUrl?.reveal()
    if (url === undefined) throw usageRefusal('name the target: --to postgres://…, or DATABASE_URL.')
    if (!/^postgres(ql)?:\/\//i.test(url) || !URL.canParse(url)) {
      throw usageRefusal('the target is not an address that starts with postgres://.')
    }
    const { dataFolder } = context.settings
    const file = join(dataFolder, 'tollgate.db')
    if (!existsSync(file)) {
      throw new Refusal(exitCodes.notFound, `there is no database ${file}.`, 'TOLLGATE_DATA=FOLDER of the gateway')
    }
    const moved = await orRefuse(
      () => move(context, dataFolder, url),
      'the copy failed and was undone, so that it can be run again',
    )
    printOutcome(context, url, moved)
  },
}

interface Moved extends CopyOutcome {
  readonly books: Books
}

async function move({ clock, terminal, json }: CommandContext, dataFolder: string, url: string): Promise<Moved> {
  const lock = lockDataFolder(dataFolder)
  const folder = openDataFolder(dataFolder, () => {})
  const proofs: Books[] = []
  const copy = (source: Database, target: Database) =>
    copyDatabase({
      source,
      target,
      prove: async (side) => {
        const books = await readBooks(side)
        proofs.push(books)
        return books.lines
      },
      onProgress: (progress) => {
        if (!json) terminal.complain(progressText(progress, terminal.isWatched))
      },
    })
  try {
    const outcome = await withDatabase(openReadOnly(undefined, dataFolder), (source) =>
      withDatabase(openCopyTarget(url, clock), (target) => copy(source, target)),
    )
    writeFence(folder, shownTarget(url), isoTime(clock.now()))
    return { ...outcome, books: proofs[0] ?? { lines: [], wallets: 0n, transfers: 0n, total: 0n } }
  } finally {
    lock.release()
  }
}

interface Books {
  /** The sum of the transfers of each account. */
  readonly lines: readonly string[]
  readonly wallets: bigint
  readonly transfers: bigint
  /** In all wallets. */
  readonly total: bigint
}

/** Throws a StartRefusal if the books of either side are wrong, because such a state must not be copied. */
async function readBooks(side: Database): Promise<Books> {
  const { findings, wallets, transfers } = await verifyBooks(side)
  const [first] = findings
  if (first) {
    throw new StartRefusal(
      `The books are wrong in ${side.engine}, so nothing was moved: ${first.check}, ${first.id}, ${first.detail}. See tollgate ledger verify.`,
    )
  }
  const accounts = await side.sql<{ id: string; kind: string; total: bigint }>`SELECT a.id, a.kind,
      COALESCE(c.total, 0) - COALESCE(d.total, 0) AS total FROM accounts a
    LEFT JOIN (SELECT credit_account, CAST(SUM(amount) AS BIGINT) AS total FROM transfers GROUP BY credit_account) c
      ON c.credit_account = a.id
    LEFT JOIN (SELECT debit_account, CAST(SUM(amount) AS BIGINT) AS total FROM transfers GROUP BY debit_account) d
      ON d.debit_account = a.id`
  const inWallets = accounts.filter(({ kind }) => kind === 'wallet')
  return {
    // Sorted here, because the two engines may collate differently.
    lines: accounts.map(({ id, total }) => `${id} ${total}`).sort(),
    wallets,
    transfers,
    total: inWallets.reduce((sum, { total }) => sum + total, 0n),
  }
}

/** On a terminal the line of a table is rewritten; otherwise there is one per table and step. */
function progressText({ table, step, rows }: CopyProgress, isWatched: boolean): string {
  const text = `${step === 'same' ? 'same on both sides' : step} ${table}: ${shownCount(rows)}`
  if (isWatched) return step === 'same' ? `\r\u001b[K${text}\n` : `\r\u001b[K${text}`
  return `${text}\n`
}

function printOutcome(context: CommandContext, url: string, { copied, tables, left, books }: Moved): void {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0n)
  const { dataFolder } = context.settings
  const result = {
    target: shownTarget(url),
    copied,
    tables: tables.map((table) => ({ ...table, rows: Number(table.rows) })),
    wallets: Number(books.wallets),
    transfers: Number(books.transfers),
    balance: formatUsd(books.total as Nano),
    not_copied: left,
  }
  const lines = [
    `${copied ? 'Copied' : 'Copied earlier, compared again'}: ${shownCount(rows)} rows of ${tables.length} tables are the same on both sides.`,
    `${shownCount(books.wallets)} wallets with $${formatUsd(books.total as Nano)}, recomputed from ${shownCount(books.transfers)} transfers on both sides.`,
    ...(left.length > 0 ? [`Not copied, because these tables are not Tollgate's: ${left.join(', ')}.`] : []),
    `${dataFolder} is marked: no gateway uses the old database again. Keep it until the new one has a backup.`,
    '',
    'Now start the gateway with DATABASE_URL set to the new database and the same TOLLGATE_DATA: its files "secret" and',
    '"admin-token" are still in use. Further replicas need both as TOLLGATE_SECRET and TOLLGATE_ADMIN_TOKEN.',
  ]
  printResult(context, result, () => `${lines.join('\n')}\n`)
}
