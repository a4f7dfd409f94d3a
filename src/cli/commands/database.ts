// `tollgate backup`, `tollgate restore` and `tollgate migrate-to-postgres`: copy the embedded database to one file, restore
// it, and move it to PostgreSQL. They recompute the books and never leave two databases that a gateway could start on.

import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isoTime } from '../../kernel/clock.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import type { Verification } from '../../ledger/verify.ts'
import { backUp, restore } from '../../store/backup.ts'
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
import { readMigrationState } from '../../store/migrate.ts'
import { openDatabase } from '../../store/open-database.ts'
import { causeText, StartRefusal } from '../../store/start-refusal.ts'
import { isSecretOnRecord } from '../../tenancy/secrets.ts'
import { type CommandContext, type CommandDefinition, printResult } from '../command.ts'
import { openReadOnly, orRefuse, verifyBooks, withDatabase } from '../read-only-database.ts'
import { exitCodes, ifPossible, Refusal, usageRefusal } from '../refusal.ts'
import { counted, shownCount } from '../values.ts'
import { warningText } from './audit.ts'
import { readMasterSecrets } from './secrets.ts'

/** Files of the data folder that the database needs to be useful. */
const secretFiles = ['secret', 'admin-token']

const backupCommand: CommandDefinition = {
  words: ['backup'],
  isOffline: true,
  summary: 'copies the embedded database to one file while the gateway is running',
  details: `FILE must not exist; it appears under its name only when it is complete. It contains everything charged before the
command started, but not the secrets of the data folder, so that a stolen backup has no usable key: without the file "secret"
(or TOLLGATE_SECRET) no API key and no stored provider key in it works. Keep the secret elsewhere, or include it with
--with-secrets and protect the file accordingly.`,
  positionals: [{ name: 'FILE' }],
  options: { 'with-secrets': { help: `include the files ${secretFiles.join(' and ')} of the data folder` } },
  examples: ['tollgate backup tollgate-2026-11-15.db', 'tollgate backup all.db --with-secrets'],
  async run(context) {
    const { dataFolder } = context.settings
    const file = fileOf(context, 'pg_dump --format=custom --file=FILE "$DATABASE_URL"')
    const folder = dirname(file)
    if (!existsSync(folder)) throw new Refusal(exitCodes.failed, `there is no folder ${folder}.`, `mkdir -p ${folder}`)
    await orRefuse(async () => {
      const wanted = context.isSet('with-secrets') ? secretFiles : []
      const { bytes, secretFiles: secrets, fault } = backUp({ dataFolder, file, secretFiles: wanted })
      printResult(context, { file, bytes, secrets }, () => `${file}: ${shownCount(bytes)} bytes\n`)
      const secretFile = join(dataFolder, 'secret')
      const secret = existsSync(secretFile) ? secretFile : 'TOLLGATE_SECRET'
      const note =
        secrets.length > 0
          ? `It contains ${secrets.join(' and ')}: protect it.`
          : `It does not contain ${secret}, which its keys need: keep that too, elsewhere.`
      if (context.json) return
      context.terminal.complain(`${note}\n`)
      if (fault) context.terminal.complain(`This Tollgate cannot restore it. ${fault.what}. ${fault.advice}.\n`)
    }, failed)
  },
}

const restoreCommand: CommandDefinition = {
  words: ['restore'],
  isOffline: true,
  summary: 'restores a backup into a data folder without a database, and recomputes its books',
  details: `The folder is TOLLGATE_DATA. Nothing in it is overwritten. Charges and top-ups made after the backup are missing.`,
  positionals: [{ name: 'FILE' }],
  examples: ['TOLLGATE_DATA=./restored tollgate restore tollgate-2026-11-15.db'],
  async run(context) {
    const file = fileOf(context, 'pg_restore --dbname="$DATABASE_URL" --no-owner FILE')
    await orRefuse(() => restoreFile(context, file), failed)
  },
}

async function restoreFile(context: CommandContext, file: string): Promise<void> {
  const { terminal, settings } = context
  const folder = openDataFolder(settings.dataFolder, () => {})
  const lock = lockDataFolder(folder.path)
  try {
    const outcome = restore({ folder, file })
    const { verification, secret } = await examine(context).catch((thrown) => {
      throw new StartRefusal(`It was restored, but its books cannot be read: ${causeText(thrown)}`, { cause: thrown })
    })
    const { findings = [], warnings = [], wallets, transfers } = verification ?? {}
    // null = not counted.
    const counts = {
      wallets: wallets == null ? null : Number(wallets),
      transfers: transfers == null ? null : Number(transfers),
    }
    const result = { folder: folder.path, secrets: outcome.secretFiles, ...counts, findings, warnings, secret }
    printResult(context, result, () => {
      if (!verification) return `${folder.path}: of an older Tollgate\n`
      return `${folder.path}: ${counted(verification.wallets, 'wallet')}, ${counted(verification.transfers, 'transfer')}\n`
    })
    if (!context.json) {
      if (!verification) terminal.complain(upgradeAdvice)
      terminal.complain(warningText(warnings))
      if (outcome.secretFiles.length > 0) terminal.complain(`With ${outcome.secretFiles.join(' and ')}.\n`)
      if (secret !== 'fits') terminal.complain(secretAdvice(secret, folder.file('secret')))
    }
    if (findings.length > 0)
      throw new Refusal(exitCodes.failed, 'the books of this backup are wrong.', 'tollgate ledger verify')
  } finally {
    lock.release()
  }
}

/** An older database is migrated at the next start, and its books can only be recomputed after that. */
const upgradeAdvice = 'The next start upgrades it; then recompute its books: tollgate ledger verify\n'

type SecretState = 'fits' | 'missing' | 'another'

interface Examined {
  /** undefined = the database is of an older version. */
  readonly verification: Verification | undefined
  readonly secret: SecretState
}

function examine(context: CommandContext): Promise<Examined> {
  return withDatabase(openReadOnly(undefined, context.settings.dataFolder), async (database) => {
    const { pending } = await readMigrationState(database)
    const verification = pending === 0 ? await verifyBooks(database) : undefined
    const secrets = await ifPossible(Promise.try(readMasterSecrets, context))
    if (!secrets) return { verification, secret: 'missing' }
    const fits = await isSecretOnRecord(database.sql, secrets.current)
    return { verification, secret: fits ? 'fits' : 'another' }
  })
}

function secretAdvice(state: SecretState, path: string): string {
  const what =
    state === 'missing' ? 'The secret is not in the backup' : 'The secret found here is not the one of the backup'
  return `${what}: before the first start copy the file "secret" of that gateway to ${path}, or set its TOLLGATE_SECRET.\n`
}

const failed = 'it failed and was undone'

/** PostgreSQL has its own tools. */
function fileOf({ settings, inputs, first }: CommandContext, postgresCommand: string): string {
  if (settings.databaseUrl === undefined) return resolve(inputs.cwd, first)
  const what = 'DATABASE_URL is set, and PostgreSQL has its own tools for this.'
  throw new Refusal(exitCodes.failed, what, postgresCommand)
}

const migrateToPostgres: CommandDefinition = {
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
    // Opened for writing, because a gateway that was killed may have left charges in its journal.
    const outcome = await withDatabase(openDatabase({ url: undefined, dataFolder }), (source) =>
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

/** On a terminal the line of a table is rewritten; otherwise there is one per table and step, and one for an empty table. */
function progressText({ table, step, rows }: CopyProgress, isWatched: boolean): string {
  if (!isWatched && rows === 0n && step !== 'same') return ''
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
    `${counted(books.wallets, 'wallet')} with $${formatUsd(books.total as Nano)}, recomputed from ${counted(books.transfers, 'transfer')} on both sides.`,
    ...(left.length > 0 ? [`Not copied, because these tables are not Tollgate's: ${left.join(', ')}.`] : []),
    `${dataFolder} is marked: no gateway uses the old database again. Keep it until the new one has a backup.`,
    '',
    'Now start the gateway with DATABASE_URL set to the new database and the same TOLLGATE_DATA: its files "secret" and',
    '"admin-token" are still in use. Further replicas need both as TOLLGATE_SECRET and TOLLGATE_ADMIN_TOKEN.',
  ]
  printResult(context, result, () => `${lines.join('\n')}\n`)
}

export const databaseCommands: readonly CommandDefinition[] = [backupCommand, restoreCommand, migrateToPostgres]
