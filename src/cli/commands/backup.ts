// `tollgate backup` and `tollgate restore`: the embedded database in one file, and back. PostgreSQL has its own tools for
// both, which these commands name. No secret is ever printed.

import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Verification } from '../../ledger/verify.ts'
import { backUp, restore } from '../../store/backup.ts'
import { openDataFolder } from '../../store/data-folder.ts'
import { lockDataFolder } from '../../store/folder-lock.ts'
import { readMigrationState } from '../../store/migrate.ts'
import { causeText, StartRefusal } from '../../store/start-refusal.ts'
import { isSecretOnRecord } from '../../tenancy/secrets.ts'
import { type CommandContext, type CommandDefinition, printResult } from '../command.ts'
import { openReadOnly, orRefuse, verifyBooks, withDatabase } from '../read-only-database.ts'
import { exitCodes, ifPossible, Refusal } from '../refusal.ts'
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
command started, but not the secrets of the data folder, so that a stolen backup is useless: without the file "secret"
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
      const { bytes, secretFiles: secrets } = backUp({ dataFolder, file, secretFiles: wanted })
      printResult(context, { file, bytes, secrets }, () => `${file}: ${shownCount(bytes)} bytes\n`)
      const secretFile = join(dataFolder, 'secret')
      const secret = existsSync(secretFile) ? secretFile : 'TOLLGATE_SECRET'
      const note =
        secrets.length > 0
          ? `It contains ${secrets.join(' and ')}: protect it.`
          : `It does not contain ${secret}, which its keys need: keep that too, elsewhere.`
      if (!context.json) context.terminal.complain(`${note}\n`)
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
    const counts = { wallets: countOrNull(wallets), transfers: countOrNull(transfers) }
    const result = { folder: folder.path, secrets: outcome.secretFiles, ...counts, findings, warnings, secret }
    printResult(context, result, () => {
      return `${folder.path}: ${verification ? booksText(verification) : 'of an older Tollgate'}\n`
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

function booksText({ wallets, transfers }: Verification): string {
  return `${counted(wallets, 'wallet')}, ${counted(transfers, 'transfer')}`
}

/** null = not counted. */
function countOrNull(count: bigint | undefined): number | null {
  return count === undefined ? null : Number(count)
}

type SecretState = 'fits' | 'missing' | 'another'

interface Examined {
  /** undefined = the database is of an older version. */
  readonly verification: Verification | undefined
  readonly secret: SecretState
}

function examine(context: CommandContext): Promise<Examined> {
  return withDatabase(openReadOnly(undefined, context.settings.dataFolder), async (database) => {
    const { pending, unknown } = await readMigrationState(database.sql)
    const isOurs = pending === 0 && unknown.length === 0
    const verification = isOurs ? await verifyBooks(database) : undefined
    const secrets = await ifPossible(() => readMasterSecrets(context))
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

export const backupCommands: readonly CommandDefinition[] = [backupCommand, restoreCommand]
