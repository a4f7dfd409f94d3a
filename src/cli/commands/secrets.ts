// `tollgate secrets`: replaces the master secret while the gateway is running. It works on the gateway's database with the
// same two secrets in its environment; it shows counts and names, never a secret.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Secret } from '../../kernel/secret.ts'
import type { Database } from '../../store/database.ts'
import { openDatabase } from '../../store/open-database.ts'
import { StartRefusal } from '../../store/start-refusal.ts'
import { type RotationStatus, readRotationStatus, rotateSecrets } from '../../tenancy/rotation.ts'
import { isSecretOnRecord, type MasterSecret, parseMasterSecret } from '../../tenancy/secrets.ts'
import { type CommandContext, type CommandDefinition, printResult, readConfig } from '../command.ts'
import { openReadOnly, orRefuse, otherDatabase, withDatabase } from '../read-only-database.ts'
import { exitCodes, Refusal } from '../refusal.ts'
import { type Columns, counted, renderTable, shownCount, shownTime } from '../values.ts'

const steps = `To replace the master secret without a failed request:
  1. openssl rand -base64 32
  2. Restart the gateway with TOLLGATE_SECRET=(the new one) and TOLLGATE_SECRET_PREVIOUS=(the old one; if
     TOLLGATE_SECRET was not set, it is in the file "secret" of the data folder). Both secrets work
     from then on. With several replicas: first restart each with the old one still as TOLLGATE_SECRET and the
     new one as TOLLGATE_SECRET_PREVIOUS, then each as above.
  3. Run tollgate secrets rotate with the same two variables. It re-encrypts stored provider keys and
     responses. API keys move to the new secret when they are used.
  4. When it says so, restart without TOLLGATE_SECRET_PREVIOUS.
It can be stopped at any time and run again.`

const secretsStatus: CommandDefinition = {
  words: ['secrets', 'status'],
  isOffline: true,
  isDefault: true,
  summary: 'shows what still depends on the previous master secret',
  details: 'Reads the database of TOLLGATE_DATA or DATABASE_URL, with the TOLLGATE_SECRET of the gateway.',
  examples: ['tollgate secrets', 'tollgate secrets status --json'],
  async run(context) {
    const secrets = readMasterSecrets(context)
    const { databaseUrl, dataFolder } = secrets.config
    await withStore(openReadOnly(databaseUrl?.reveal(), dataFolder), async (database) => {
      await refuseWrongSecret(database, secrets)
      const status = await readRotationStatus(database.sql, secrets.current, context.clock.now())
      printResult(context, jsonOf(secrets, status), () => statusText(context, secrets, status))
    })
  },
}

const rotate: CommandDefinition = {
  words: ['secrets', 'rotate'],
  isOffline: true,
  summary: 'moves stored provider keys to the new master secret while the gateway is running',
  details: steps,
  examples: ['TOLLGATE_SECRET=… TOLLGATE_SECRET_PREVIOUS=… tollgate secrets rotate'],
  async run(context) {
    const secrets = readMasterSecrets(context)
    const { previous } = secrets
    const { databaseUrl, dataFolder } = secrets.config
    if (previous === undefined) {
      const message = `TOLLGATE_SECRET_PREVIOUS is not set, so there is nothing to move from.\n${steps}`
      throw new Refusal(exitCodes.usage, message, 'tollgate secrets rotate, with both variables set')
    }
    const file = join(dataFolder, 'tollgate.db')
    if (databaseUrl === undefined && !existsSync(file)) {
      throw new Refusal(exitCodes.failed, `There is no database ${file}.`, otherDatabase)
    }
    const opening = openDatabase({ url: databaseUrl?.reveal(), dataFolder })
    await withStore(opening, (database) => move(context, database, { ...secrets, previous }))
  },
}

async function move(
  context: CommandContext,
  database: Database,
  secrets: MasterSecrets & { readonly previous: MasterSecret },
): Promise<void> {
  await refuseWrongSecret(database, secrets)
  const { terminal } = context
  const onProgress = ({ done, total }: { readonly done: number; readonly total: number }): void => {
    terminal.showProgress(`moving provider keys: ${shownCount(done)} of ${shownCount(total)}`)
  }
  const outcome = await rotateSecrets({ database, from: secrets.previous, to: secrets.current, onProgress })
  terminal.showProgress('')
  if (outcome.kind === 'same_secret') {
    throw new Refusal(exitCodes.usage, 'TOLLGATE_SECRET and TOLLGATE_SECRET_PREVIOUS are the same.')
  }
  const status = await readRotationStatus(database.sql, secrets.current, context.clock.now())
  const { rewrapped, altered } = outcome
  printResult(
    context,
    { moved: rewrapped, altered, ...jsonOf(secrets, status) },
    () => `${counted(rewrapped, 'provider key')} moved.\n${statusText(context, secrets, status)}`,
  )
  if (altered.length === 0) return
  const what = `${counted(altered.length, 'stored provider key')} cannot be decrypted with either secret: ${altered.join(', ')}.`
  throw new Refusal(exitCodes.failed, what, 'store them again: tollgate credentials put')
}

/** A gateway without the new secret could not decrypt keys that were moved to it. */
async function refuseWrongSecret({ sql }: Database, { current, previous }: MasterSecrets): Promise<void> {
  if (await isSecretOnRecord(sql, current)) return
  const isEarly = previous !== undefined && (await isSecretOnRecord(sql, previous))
  const what = isEarly
    ? 'the gateway was not started with the new secret yet, so it could not decrypt keys that are moved now.'
    : `the secret in ${current.source} is not the one that the gateway of this database was started with.`
  throw new Refusal(exitCodes.failed, what, isEarly ? 'restart the gateway with both secrets first' : undefined)
}

function withStore(opening: Promise<Database>, work: (database: Database) => Promise<void>): Promise<void> {
  return orRefuse(() => withDatabase(opening, work), 'the database failed', otherDatabase)
}

function isDone({ keys, overlaps, credentials, responses, batches }: RotationStatus): boolean {
  return keys + overlaps + credentials + responses + batches === 0
}

function jsonOf({ previous }: MasterSecrets, status: RotationStatus) {
  return {
    rotating: previous !== undefined,
    previous_may_go: isDone(status),
    waiting: {
      keys: status.keys,
      overlaps: status.overlaps,
      credentials: status.credentials,
      responses: status.responses,
      batches: status.batches,
    },
    first_keys: status.firstKeys.map(({ id, name, last4, lastUsedAt }) => ({
      id,
      name,
      last4,
      last_used_at: lastUsedAt === undefined ? null : isoTime(lastUsedAt),
    })),
  }
}

const keyColumns: Columns<RotationStatus['firstKeys'][number]> = [
  ['KEY', ({ id }) => id],
  'name',
  ['SECRET', ({ last4 }) => `…${last4}`],
  ['LAST USED (UTC)', ({ lastUsedAt }) => (lastUsedAt === undefined ? 'never' : shownTime(isoTime(lastUsedAt)))],
]

function statusText({ terminal }: CommandContext, { previous }: MasterSecrets, status: RotationStatus): string {
  if (isDone(status)) {
    return previous === undefined
      ? 'Everything uses the current secret; no rotation is in progress.\n'
      : 'Nothing depends on the previous secret any more: restart without TOLLGATE_SECRET_PREVIOUS, and destroy it.\n'
  }
  const { keys, overlaps, credentials, responses, batches, firstKeys } = status
  const waiting = [
    [credentials, 'provider key', ': run tollgate secrets rotate'],
    [responses, 'stored response', ': run tollgate secrets rotate'],
    [batches, 'sealed row of a batch', ': run tollgate secrets rotate'],
    [overlaps, 'replaced secret', ' in an overlap: moves when used, or ends in time'],
    [keys, 'API key', ': each moves when it is used next; rotate or revoke the others'],
  ] as const
  const counts = waiting.map(([count, noun, what]) => (count === 0 ? '' : `  ${counted(count, noun)}${what}\n`))
  const table = keys === 0 ? '' : `\n${renderTable(keyColumns, firstKeys, terminal)}`
  const more = keys > firstKeys.length ? `… and ${keys - firstKeys.length} more\n` : ''
  return `Still on the previous secret:\n${counts.join('')}${table}${more}Keep TOLLGATE_SECRET_PREVIOUS until this is empty: tollgate secrets\n`
}

export const secretCommands: readonly CommandDefinition[] = [secretsStatus, rotate]

export interface MasterSecrets {
  readonly config: Config
  readonly current: MasterSecret
  /** Set during a rotation. */
  readonly previous: MasterSecret | undefined
}

export function readMasterSecrets(context: CommandContext): MasterSecrets {
  const config = readConfig(context)
  const { secret, secretPrevious } = config
  try {
    return {
      config,
      current: secret ? parseMasterSecret(secret, 'TOLLGATE_SECRET') : readSecretFile(config.dataFolder),
      previous: secretPrevious && parseMasterSecret(secretPrevious, 'TOLLGATE_SECRET_PREVIOUS'),
    }
  } catch (thrown) {
    if (!(thrown instanceof StartRefusal)) throw thrown
    throw new Refusal(exitCodes.failed, thrown.message, 'tollgate secrets rotate --help')
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
