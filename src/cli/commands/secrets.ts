// `tollgate secrets`: replaces the master secret while the gateway is running. It works on the gateway's database with the
// same two secrets in its environment; it shows counts and names, never a secret.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, loadConfig } from '../../config/config.ts'
import { formatFault } from '../../config/fault.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Secret } from '../../kernel/secret.ts'
import type { Database } from '../../store/database.ts'
import { openDatabase } from '../../store/open-database.ts'
import { StartRefusal } from '../../store/start-refusal.ts'
import { type RotationStatus, readRotationStatus, rotateSecrets } from '../../tenancy/rotation.ts'
import { isSecretOnRecord, type MasterSecret, parseMasterSecret } from '../../tenancy/secrets.ts'
import { type CommandContext, type CommandDefinition, printJson } from '../command.ts'
import { openReadOnly } from '../read-only-database.ts'
import { exitCodes, Refusal } from '../refusal.ts'
import { renderTable, shownCount, shownTime } from '../table.ts'

const steps = `A new master secret, without a failed request:
  1. openssl rand -base64 32
  2. restart the gateway with TOLLGATE_SECRET=(the new one) and TOLLGATE_SECRET_PREVIOUS=(the old one; without a
     TOLLGATE_SECRET until now it is in the file "secret" of the data folder). Both are good from then on.
     Several replicas: first restart each with the new one as TOLLGATE_SECRET_PREVIOUS only, then each as above.
  3. tollgate secrets rotate, with the same two variables: moves the stored provider keys. API keys move when used.
  4. when it says so, restart without TOLLGATE_SECRET_PREVIOUS.
It may be stopped at any time and run again.`

const secretsStatus: CommandDefinition = {
  words: ['secrets', 'status'],
  isOffline: true,
  isDefault: true,
  summary: 'tells what still hangs on the previous master secret',
  details: 'Reads the database of TOLLGATE_DATA or DATABASE_URL, with the TOLLGATE_SECRET of the gateway.',
  examples: ['tollgate secrets', 'tollgate secrets status --json'],
  async run(context) {
    const secrets = readMasterSecrets(context)
    if (secrets instanceof Refusal) return secrets
    const { config, current } = secrets
    return await withStore(
      () => openReadOnly(config.databaseUrl?.reveal(), config.dataFolder),
      async (database) => {
        const wrong = await wrongSecret(database, secrets)
        if (wrong) return wrong
        const status = await readRotationStatus(database.sql, current, context.clock.now())
        if (context.json) return printJson(context, jsonOf(secrets, status))
        context.terminal.print(statusText(context, secrets, status))
        return undefined
      },
    )
  },
}

const rotate: CommandDefinition = {
  words: ['secrets', 'rotate'],
  isOffline: true,
  summary: 'moves stored provider keys to the new master secret, while the gateway serves',
  details: steps,
  examples: ['TOLLGATE_SECRET=… TOLLGATE_SECRET_PREVIOUS=… tollgate secrets rotate'],
  async run(context) {
    const secrets = readMasterSecrets(context)
    if (secrets instanceof Refusal) return secrets
    const { config, previous } = secrets
    if (previous === undefined) {
      const message = `TOLLGATE_SECRET_PREVIOUS is not set, so there is nothing to move from.\n${steps}`
      return new Refusal(exitCodes.usage, message, 'tollgate secrets rotate, with both variables set')
    }
    const file = join(config.dataFolder, 'tollgate.db')
    if (config.databaseUrl === undefined && !existsSync(file)) return noStore(`There is no database ${file}.`)
    const open = () => openDatabase({ url: config.databaseUrl?.reveal(), dataFolder: config.dataFolder })
    return await withStore(open, (database) => move(context, database, { ...secrets, previous }))
  },
}

async function move(
  context: CommandContext,
  database: Database,
  secrets: MasterSecrets & { readonly previous: NonNullable<MasterSecrets['previous']> },
): Promise<Refusal | undefined> {
  const wrong = await wrongSecret(database, secrets)
  if (wrong) return wrong
  const { terminal } = context
  const onProgress = ({ done, total }: { readonly done: number; readonly total: number }): void => {
    if (terminal.isWatched)
      terminal.complain(`\r\u001b[Kmoving provider keys: ${shownCount(done)} of ${shownCount(total)}`)
  }
  const outcome = await rotateSecrets({ database, from: secrets.previous, to: secrets.current, onProgress })
  if (terminal.isWatched) terminal.complain('\r\u001b[K')
  if (outcome.kind === 'same_secret') {
    return new Refusal(exitCodes.usage, 'TOLLGATE_SECRET and TOLLGATE_SECRET_PREVIOUS are the same.')
  }
  const status = await readRotationStatus(database.sql, secrets.current, context.clock.now())
  const { rewrapped, altered } = outcome
  if (context.json) printJson(context, { moved: rewrapped, altered, ...jsonOf(secrets, status) })
  else terminal.print(`${counted(rewrapped, 'provider key')} moved.\n${statusText(context, secrets, status)}`)
  if (altered.length === 0) return undefined
  const what = `${counted(altered.length, 'stored provider key')} cannot be opened with any secret: ${altered.join(', ')}.`
  return new Refusal(exitCodes.failed, what, 'store them again: tollgate credentials put')
}

/** A gateway without the new secret could not open keys that were moved to it. */
async function wrongSecret({ sql }: Database, { current, previous }: MasterSecrets): Promise<Refusal | undefined> {
  if (await isSecretOnRecord(sql, current)) return undefined
  const isEarly = previous !== undefined && (await isSecretOnRecord(sql, previous))
  const what = isEarly
    ? 'no gateway was started with the new secret yet, and what is moved now could not be opened.'
    : `the secret in ${current.source} is not the one the gateway of this database was started with.`
  return new Refusal(exitCodes.failed, what, isEarly ? 'restart the gateway with both secrets first' : undefined)
}

async function withStore(
  open: () => Promise<Database>,
  work: (database: Database) => Promise<Refusal | undefined>,
): Promise<Refusal | undefined> {
  let database: Database
  try {
    database = await open()
  } catch (thrown) {
    if (thrown instanceof StartRefusal) return noStore(thrown.message)
    throw thrown
  }
  try {
    return await work(database)
  } catch (thrown) {
    return noStore(`The database failed: ${thrown instanceof Error ? thrown.message : String(thrown)}.`)
  } finally {
    await database.close()
  }
}

function noStore(message: string): Refusal {
  return new Refusal(exitCodes.failed, message, 'TOLLGATE_DATA=FOLDER or DATABASE_URL=postgres://… of the gateway')
}

function isDone({ keys, overlaps, credentials }: RotationStatus): boolean {
  return keys + overlaps + credentials === 0
}

function jsonOf({ previous }: MasterSecrets, status: RotationStatus) {
  return {
    rotating: previous !== undefined,
    previous_may_go: isDone(status),
    waiting: { keys: status.keys, overlaps: status.overlaps, credentials: status.credentials },
    first_keys: status.firstKeys.map(({ id, name, last4, lastUsedAt }) => ({
      id,
      name,
      last4,
      last_used_at: lastUsedAt === undefined ? null : isoTime(lastUsedAt),
    })),
  }
}

function statusText({ terminal }: CommandContext, { previous }: MasterSecrets, status: RotationStatus): string {
  if (isDone(status)) {
    return previous === undefined
      ? 'Everything hangs on the current secret; no rotation is under way.\n'
      : 'Nothing hangs on the previous secret any more: restart without TOLLGATE_SECRET_PREVIOUS, and destroy it.\n'
  }
  const { keys, overlaps, credentials, firstKeys } = status
  const lines = ['Still on the previous secret:']
  if (credentials > 0) lines.push(`  ${counted(credentials, 'provider key')}: run tollgate secrets rotate`)
  if (overlaps > 0) lines.push(`  ${counted(overlaps, 'replaced secret')} in an overlap: used, or over in time`)
  if (keys > 0)
    lines.push(`  ${counted(keys, 'API key')}: each moves when it is used next; rotate or revoke the others`)
  const columns = ['KEY', 'NAME', 'SECRET', 'LAST USED (UTC)'].map((title) => ({ title }))
  const rows = firstKeys.map(({ id, name, last4, lastUsedAt }) => {
    return [id, name, `…${last4}`, lastUsedAt === undefined ? 'never' : shownTime(isoTime(lastUsedAt))]
  })
  const table = keys === 0 ? '' : `\n${renderTable(columns, rows, terminal)}`
  const more = keys > rows.length ? `… and ${keys - rows.length} more\n` : ''
  return `${lines.join('\n')}\n${table}${more}Keep TOLLGATE_SECRET_PREVIOUS until this is empty: tollgate secrets\n`
}

function counted(count: number, word: string): string {
  return `${shownCount(count)} ${word}${count === 1 ? '' : 's'}`
}

export const secretCommands: readonly CommandDefinition[] = [secretsStatus, rotate]

export interface MasterSecrets {
  readonly config: Config
  readonly current: MasterSecret
  /** Set during a rotation. */
  readonly previous: MasterSecret | undefined
}

export function readMasterSecrets({ inputs }: CommandContext): MasterSecrets | Refusal {
  const loaded = loadConfig(inputs)
  if ('faults' in loaded) {
    const lines = loaded.faults.map((fault) => `\n  ${formatFault(fault)}`).join('')
    return new Refusal(exitCodes.failed, `the configuration is wrong:${lines}`, 'tollgate doctor')
  }
  const { config } = loaded
  try {
    const { secret, secretPrevious } = config
    return {
      config,
      current: secret ? parseMasterSecret(secret, 'TOLLGATE_SECRET') : readSecretFile(config.dataFolder),
      previous: secretPrevious && parseMasterSecret(secretPrevious, 'TOLLGATE_SECRET_PREVIOUS'),
    }
  } catch (thrown) {
    if (!(thrown instanceof StartRefusal)) throw thrown
    return new Refusal(exitCodes.failed, thrown.message, 'tollgate secrets rotate --help')
  }
}

function readSecretFile(dataFolder: string): MasterSecret {
  const file = join(dataFolder, 'secret')
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    throw new StartRefusal(`TOLLGATE_SECRET is not set, and ${file} cannot be read.`)
  }
  return parseMasterSecret(new Secret(text), file)
}
