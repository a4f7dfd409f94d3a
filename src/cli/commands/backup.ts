// `tollgate backup` and `tollgate restore`: the embedded database in one file, and back. PostgreSQL has tools of its own
// for both; these commands then say which. No secret is ever printed.

import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { readRecomputeCharge } from '../../catalog/price-versions.ts'
import { systemClock } from '../../kernel/clock.ts'
import { type Verification, verify } from '../../ledger/verify.ts'
import { backUp } from '../../store/copy/back-up.ts'
import { restore } from '../../store/copy/restore.ts'
import { openDataFolder } from '../../store/data-folder.ts'
import { lockDataFolder } from '../../store/folder-lock.ts'
import { readMigrationState } from '../../store/migration-state.ts'
import { causeText, StartRefusal } from '../../store/start-refusal.ts'
import { isSecretOnRecord } from '../../tenancy/secrets.ts'
import { type CommandContext, type CommandDefinition, type CommandInput, printJson } from '../command.ts'
import { openReadOnly } from '../read-only-database.ts'
import { exitCodes, Refusal } from '../refusal.ts'
import { counted, shownCount } from '../table.ts'
import { warningText } from './audit.ts'
import { readMasterSecrets } from './secrets.ts'

/** Files of the data folder that the database needs to be useful. */
const secretFiles = ['secret', 'admin-token']

const backupCommand: CommandDefinition = {
  words: ['backup'],
  isOffline: true,
  summary: 'writes the embedded database into one file, while the gateway serves',
  details: `FILE must not exist; it is complete when it has its name. Everything that was charged before the command began is in it.
The secrets of the data folder are not, so that a stolen backup opens nothing; without the file "secret" (or the
TOLLGATE_SECRET) no API key and no stored provider key of a backup works. Keep it elsewhere, or take it along with
--with-secrets and guard the file as you guard the secret.`,
  positionals: [{ name: 'FILE' }],
  options: { 'with-secrets': { help: `also the files ${secretFiles.join(' and ')} of the data folder` } },
  examples: ['tollgate backup tollgate-2026-11-15.db', 'tollgate backup all.db --with-secrets'],
  async run(context, input) {
    const { databaseUrl, dataFolder } = context.settings
    if (databaseUrl !== undefined) return usePostgresTool('pg_dump --format=custom --file=FILE "$DATABASE_URL"')
    const file = fileOf(context, input)
    const folder = dirname(file)
    if (!existsSync(folder)) return new Refusal(exitCodes.failed, `there is no folder ${folder}.`, `mkdir -p ${folder}`)
    return attempt(async () => {
      const wanted = input.isSet('with-secrets') ? secretFiles : []
      const outcome = backUp({ dataFolder, file, secretFiles: wanted })
      if (context.json) return printJson(context, { file, bytes: outcome.bytes, secrets: outcome.secretFiles })
      const { terminal } = context
      terminal.print(`${file}: ${shownCount(outcome.bytes)} bytes\n`)
      if (outcome.secretFiles.length > 0) terminal.complain(`With ${outcome.secretFiles.join(' and ')}: guard it.\n`)
      else if (existsSync(join(dataFolder, 'secret')))
        terminal.complain(`Without ${join(dataFolder, 'secret')}, which its keys need: keep that too, elsewhere.\n`)
      else terminal.complain('Without TOLLGATE_SECRET, which its keys need: keep that too, elsewhere.\n')
      return undefined
    })
  },
}

const restoreCommand: CommandDefinition = {
  words: ['restore'],
  isOffline: true,
  summary: 'puts a backup into a data folder that has no database, and recomputes its books',
  details: `The folder is TOLLGATE_DATA. Nothing in it is overwritten. What was charged or paid in after the backup is not in it.`,
  positionals: [{ name: 'FILE' }],
  examples: ['TOLLGATE_DATA=./restored tollgate restore tollgate-2026-11-15.db'],
  async run(context, input) {
    const { databaseUrl } = context.settings
    if (databaseUrl !== undefined) return usePostgresTool('pg_restore --dbname="$DATABASE_URL" --no-owner FILE')
    return attempt(() => restoreFile(context, fileOf(context, input)))
  },
}

async function restoreFile(context: CommandContext, file: string): Promise<Refusal | undefined> {
  const { terminal, settings } = context
  const folder = openDataFolder(settings.dataFolder, () => {})
  const lock = lockDataFolder(folder.path)
  try {
    const outcome = restore({ folder, file })
    const { verification, secret } = await examine(context).catch((thrown) => {
      throw new StartRefusal(`It was restored, but its books cannot be read: ${causeText(thrown)}`, { cause: thrown })
    })
    const { findings = [], warnings = [], wallets, transfers } = verification ?? {}
    if (context.json) {
      const counts = { wallets: countOrNull(wallets), transfers: countOrNull(transfers) }
      printJson(context, { folder: folder.path, secrets: outcome.secretFiles, ...counts, findings, warnings, secret })
    } else {
      terminal.print(`${folder.path}: ${verification ? booksText(verification) : 'of an older Tollgate'}\n`)
      if (!verification) terminal.complain(upgradeAdvice)
      terminal.complain(warningText(warnings))
      if (outcome.secretFiles.length > 0) terminal.complain(`With ${outcome.secretFiles.join(' and ')}.\n`)
      if (secret !== 'fits') terminal.complain(secretAdvice(secret, folder.file('secret')))
    }
    if (findings.length === 0) return undefined
    return new Refusal(exitCodes.failed, 'the books of this backup are wrong.', 'tollgate ledger verify')
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

async function examine(
  context: CommandContext,
): Promise<{ readonly verification: Verification | undefined; readonly secret: SecretState }> {
  const database = await openReadOnly(undefined, context.settings.dataFolder)
  try {
    const { pending, unknown } = await readMigrationState(database.sql)
    const isOurs = pending === 0 && unknown.length === 0
    const options = { readPrice: readRecomputeCharge, now: systemClock.now() }
    const verification = isOurs ? await verify(database, options) : undefined
    const secrets = readMasterSecrets(context)
    if (secrets instanceof Refusal) return { verification, secret: 'missing' }
    const fits = await isSecretOnRecord(database.sql, secrets.current)
    return { verification, secret: fits ? 'fits' : 'another' }
  } finally {
    await database.close()
  }
}

function secretAdvice(state: SecretState, path: string): string {
  const what =
    state === 'missing' ? 'The secret is not in the backup' : 'The secret found here is not the one of the backup'
  return `${what}: before the first start put the file "secret" of that gateway to ${path}, or set its TOLLGATE_SECRET.\n`
}

function fileOf({ inputs }: CommandContext, input: CommandInput): string {
  return resolve(inputs.cwd, input.positionals[0] ?? '')
}

function usePostgresTool(command: string): Refusal {
  return new Refusal(exitCodes.failed, 'DATABASE_URL is set, and PostgreSQL brings its own tools for this.', command)
}

async function attempt(work: () => Promise<Refusal | undefined>): Promise<Refusal | undefined> {
  try {
    return await work()
  } catch (thrown) {
    const what = thrown instanceof Error ? thrown.message : String(thrown)
    if (thrown instanceof StartRefusal) return new Refusal(exitCodes.failed, what)
    return new Refusal(exitCodes.failed, `it failed, and nothing was left behind: ${what}`)
  }
}

export const backupCommands: readonly CommandDefinition[] = [backupCommand, restoreCommand]
