// The master secret and the keys derived from it, and the management token. The secret is set by the operator or created
// in the data folder at first start, never stored in the database. The database has a check of it, so that a wrong secret
// stops the start with a clear message instead of making every key a 401.

import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { Secret } from '../kernel/secret.ts'
import type { DataFolder } from '../store/data-folder.ts'
import type { Sql } from '../store/sql.ts'
import { StartRefusal } from '../store/start-refusal.ts'

/** One label per use, so that no key has two uses. */
export type SubkeyLabel =
  | 'api-key-pepper'
  | 'credential-kek'
  | 'idempotency-store'
  | 'session'
  | 'secret-check'
  | 'prompt-cache'
  | 'webhooks'
  | 'kept-reasoning'
  | 'encrypted-content'
  | 'access-token'
  | 'refresh-token'
  | 'user-code'

export interface MasterSecret {
  readonly bytes: Uint8Array
  /** For messages: `TOLLGATE_SECRET`, or the file. */
  readonly source: string
}

const secretFile = 'secret'
const bytesMin = 32
/** 32 random bytes have fewer different values than this once in 10¹⁶ secrets; repeated words and patterns have fewer. */
const distinctMin = 16

export function deriveSubkey(secret: MasterSecret, label: SubkeyLabel): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret.bytes, new Uint8Array(0), label, 32))
}

/** The operator's secret, or the one in the data folder, which is created if it is missing. */
export function loadMasterSecret(configured: Secret | undefined, folder: DataFolder): MasterSecret {
  if (configured !== undefined) return parseMasterSecret(configured, 'TOLLGATE_SECRET')
  return parseSecret(folder.readOrCreateSecret(secretFile, bytesMin).text, folder.file(secretFile))
}

/**
 * Throws a StartRefusal if the database was set up with a secret and its file is missing. A new secret would decrypt
 * nothing and be rejected as wrong from then on.
 */
export async function refuseLostSecret(sql: Sql, configured: Secret | undefined, folder: DataFolder): Promise<void> {
  const file = folder.file(secretFile)
  if (configured !== undefined || existsSync(file) || (await readCheck(sql)) === '') return
  throw new StartRefusal(
    `The master secret is missing: this database was set up with one, but TOLLGATE_SECRET is not set and ${file} does not exist. Without it no API key and no stored provider credential works. Restore the file from a backup, or set TOLLGATE_SECRET to its content; replicas share one secret. If it is permanently lost, docs/operate/backup.md#a-lost-secret says how to start over with a new one.`,
  )
}

/** Throws a StartRefusal if the text cannot be a secret. */
export function parseMasterSecret(configured: Secret, source: string): MasterSecret {
  return parseSecret(configured.reveal().trim(), source)
}

function parseSecret(text: string, source: string): MasterSecret {
  const advice = 'Make one: openssl rand -base64 32'
  if (text.length < bytesMin) {
    throw new StartRefusal(
      `${source} has ${text.length} characters; at least ${bytesMin} random ones are needed. ${advice}`,
    )
  }
  const decoded = decode(text)
  const isEncoded = decoded !== undefined && decoded.length >= bytesMin
  if (new Set<number | string>(isEncoded ? decoded : text).size < distinctMin) {
    throw new StartRefusal(`${source} repeats itself too much to be random. ${advice}`)
  }
  // A text that does not encode enough bytes is hashed to the required length.
  return { bytes: isEncoded ? decoded : createHash('sha256').update(text).digest(), source }
}

/** Hexadecimal first: read as base64 it would seem half as long again. */
function decode(text: string): Uint8Array | undefined {
  if (/^([0-9a-f]{2})+$/i.test(text)) return Buffer.from(text, 'hex')
  if (/^[0-9A-Za-z_\-+/]+={0,2}$/.test(text)) return Buffer.from(text, 'base64')
  return undefined
}

const checkName = 'secret_check'

/**
 * Records the check of the secret at first start and compares it later. The row also serialises concurrent first starts:
 * the second continues when the first has committed. If the recorded one is `previous`, a rotation has begun, and the
 * new secret replaces it.
 */
export async function confirmSecret(sql: Sql, secret: MasterSecret, previous?: MasterSecret): Promise<void> {
  const row = { name: checkName, value: checkOf(secret) }
  await sql`INSERT INTO installation ${sql([row])} ON CONFLICT DO NOTHING`
  const stored = await readCheck(sql)
  if (isSame(stored, row.value)) return
  if (previous !== undefined && isSame(stored, checkOf(previous))) {
    await sql`UPDATE installation SET value = ${row.value} WHERE name = ${checkName}`
    return
  }
  throw new StartRefusal(
    `The secret in ${secret.source} is not the one this database was set up with; with it no key and no stored credential would work. Restore the first one (the file "${secretFile}" in the data folder of the first start, or the TOLLGATE_SECRET set then). Replicas share one secret. To change it, start with the new one in TOLLGATE_SECRET and the first one in TOLLGATE_SECRET_PREVIOUS.`,
  )
}

/** Whether a gateway was last started with this secret as the current one; false also if none ever started. */
export async function isSecretOnRecord(sql: Sql, secret: MasterSecret): Promise<boolean> {
  return isSame(await readCheck(sql), checkOf(secret))
}

function checkOf(secret: MasterSecret): string {
  return createHmac('sha256', deriveSubkey(secret, 'secret-check')).update('tollgate').digest('hex')
}

async function readCheck(sql: Sql): Promise<string> {
  const [stored] = await sql<{ value: string }>`SELECT value FROM installation WHERE name = ${checkName}`
  return stored?.value ?? ''
}

function isSame(stored: string, check: string): boolean {
  return stored.length === check.length && timingSafeEqual(Buffer.from(stored), Buffer.from(check))
}

/**
 * The management token: set by the operator, or created in the data folder at first start. It is compared by hashes of
 * equal length in constant time, and never shown, logged or stored anywhere else.
 */
export interface AdminToken {
  /** For messages: `TOLLGATE_ADMIN_TOKEN`, or the file. */
  readonly source: string
  /** Where it was written; undefined if the operator set it. */
  readonly file: string | undefined
  /** Changes with the token and reveals nothing of it: sessions of another token are invalid. */
  readonly fingerprint: string
  matches(text: string): boolean
}

const tokenFile = 'admin-token'
const tokenBytes = 32

export function loadAdminToken(configured: Secret | undefined, folder: DataFolder): AdminToken {
  if (configured !== undefined) return createAdminToken(configured.reveal().trim(), 'TOLLGATE_ADMIN_TOKEN', undefined)
  const file = folder.file(tokenFile)
  return createAdminToken(folder.readOrCreateSecret(tokenFile, tokenBytes).text, file, file)
}

function createAdminToken(token: string, source: string, file: string | undefined): AdminToken {
  const expected = digest(token)
  return {
    source,
    file,
    // A second hash: the first one is what a guess is compared with, and must not leave this function.
    fingerprint: digest(`session ${expected.toString('hex')}`)
      .toString('hex')
      .slice(0, 16),
    matches: (text) => timingSafeEqual(digest(text), expected),
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
