// Signing in a device by a code that its person types into a browser: the device authorization grant, RFC 8628. The device
// starts it, polls, and gets its tokens once; the browser that opens the code first approves or denies it. Functions run inside
// the caller's transaction. Times are those of the database, because replicas share the grants and their clocks differ.

import { createHmac, randomInt } from 'node:crypto'
import { Failure } from '../kernel/failure.ts'
import { createId, type DeviceGrantId, type PersonId, type ProjectId, type SessionId } from '../kernel/ids.ts'
import { count, type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { appendAudit } from './audit.ts'
import { type Act, notFound } from './management.ts'
import { createLinkSecret, grantsOf, hashOfSecret } from './people.ts'
import { createSignIn, type Renewal } from './sign-ins.ts'
import { checkInUse, lockProject } from './workspaces.ts'

export const grantSeconds = 10 * 60
export const intervalSeconds = 5
/** A poll may arrive this much early: the network does not take the same time for each. */
const jitterMs = 1000
/** Those of all addresses together, so that a flood cannot fill the database. */
const waitingMax = 20_000

const grantRow = rowFormat({
  id: text<DeviceGrantId>(),
  state: text<'pending' | 'approved' | 'denied' | 'used'>(),
  client: text(),
  device: text(),
  /** Where it was started; undefined = unknown. */
  address: optional(text()),
  createdAt: time,
  expiresAt: time,
  intervalSeconds: count,
  polledAt: optional(time),
  /** The console session that opened it. */
  sessionId: optional(text<SessionId>()),
  personId: optional(text<PersonId>()),
  projectId: optional(text<ProjectId>()),
})

export type DeviceGrant = ItemIn<typeof grantRow>

const deviceCodePrefix = 'tg-dc-'

/** RFC 8628, section 6.1: no vowels, so that it spells no word, and nothing that is easily confused. */
const alphabet = 'BCDFGHJKLMNPQRSTVWXZ'
const userCodeLength = 8

function createUserCode(): string {
  return Array.from({ length: userCodeLength }, () => alphabet[randomInt(alphabet.length)]).join('')
}

/** `WDJB-MJHT` */
export function shownUserCode(code: string): string {
  return `${code.slice(0, userCodeLength / 2)}-${code.slice(userCodeLength / 2)}`
}

/** As people type it; undefined = it cannot be a code. */
export function readUserCode(typed: string): string | undefined {
  const code = typed.toUpperCase().replace(/[\s-]/g, '')
  return code.length === userCodeLength && [...code].every((letter) => alphabet.includes(letter)) ? code : undefined
}

export type UserCodes = ReturnType<typeof createUserCodes>

/** Computes what is stored of a code that people type: eight letters could be found from a plain hash. */
export function createUserCodes(keys: { readonly current: Uint8Array; readonly previous?: Uint8Array | undefined }) {
  const under = (key: Uint8Array, code: string) => createHmac('sha256', key).update(code).digest('hex')
  return {
    hash: (code: string) => under(keys.current, code),
    /** During a rotation of the master secret also under the previous one. */
    hashes: (code: string) => [under(keys.current, code), under(keys.previous ?? keys.current, code)] as const,
  }
}

export interface StartedGrant {
  readonly id: DeviceGrantId
  readonly deviceCode: string
  readonly userCode: string
}

/** `fullForMs`: too many are waiting, and for so long none of them expires. */
export async function startGrant(
  sql: Sql,
  { client, device, address }: Pick<DeviceGrant, 'client' | 'device' | 'address'>,
  codes: UserCodes,
  at: number,
): Promise<StartedGrant | { readonly fullForMs: number }> {
  await sql`DELETE FROM device_grants WHERE expires_at <= ${timeToSql(at - grantSeconds * 1000)}`
  const full =
    await sql`SELECT id FROM device_grants WHERE expires_at > ${timeToSql(at)} LIMIT 1 OFFSET ${BigInt(waitingMax)}`
  if (full.length > 0) {
    const [next] = await sql<{ at: bigint }>`SELECT MIN(expires_at) AS at FROM device_grants
      WHERE expires_at > ${timeToSql(at)}`
    return { fullForMs: Number(next?.at ?? at) - at }
  }
  const [deviceCode, userCode] = [deviceCodePrefix + createLinkSecret(), createUserCode()]
  const grant: DeviceGrant = {
    id: createId('dgr'),
    state: 'pending',
    client,
    device,
    address,
    createdAt: at,
    expiresAt: at + grantSeconds * 1000,
    intervalSeconds,
    polledAt: undefined,
    sessionId: undefined,
    personId: undefined,
    projectId: undefined,
  }
  const row = { ...grantRow.write(grant), hash: hashOfSecret(deviceCode), user_code: codes.hash(userCode) }
  await sql`INSERT INTO device_grants ${sql([row])}`
  return { id: grant.id, deviceCode, userCode }
}

export type PollOutcome =
  | { readonly kind: 'issued'; readonly renewal: Renewal }
  | { readonly kind: 'pending' | 'slow_down' | 'denied' | 'expired' | 'unknown' | 'used' }

/** The device asks whether it is approved; if so, it is signed in, once. */
export async function pollGrant(sql: Sql, deviceCode: string, at: number): Promise<PollOutcome> {
  const grant = grantRow.first(
    await sql`SELECT * FROM device_grants WHERE hash = ${hashOfSecret(deviceCode)} FOR NO KEY UPDATE`,
  )
  if (!grant) return { kind: 'unknown' }
  if (grant.state === 'used' || grant.state === 'denied') return { kind: grant.state }
  if (grant.expiresAt <= at) return { kind: 'expired' }
  if (grant.state === 'pending') {
    const { polledAt, intervalSeconds: interval } = grant
    const isEarly = polledAt !== undefined && at - polledAt < interval * 1000 - jitterMs
    await sql`UPDATE device_grants SET polled_at = ${timeToSql(at)},
      interval_seconds = ${BigInt(isEarly ? interval + intervalSeconds : interval)} WHERE id = ${grant.id}`
    return { kind: isEarly ? 'slow_down' : 'pending' }
  }
  const { id, personId, projectId, client, device } = grant
  if (personId === undefined || projectId === undefined) return { kind: 'unknown' }
  // The project or the role may have ended since the approval.
  if (!(await mayUse(sql, personId, projectId))) return { kind: 'denied' }
  await sql`UPDATE device_grants SET state = 'used' WHERE id = ${id}`
  const renewal = await createSignIn(sql, { personId, projectId, client, device }, at)
  const details = { grant: id, person: personId, project: projectId, client }
  const { signInId } = renewal.subject
  await appendAudit(sql, { actor: personId, at, action: 'sign_in.create', object: signInId, details })
  return { kind: 'issued', renewal }
}

/** A console session of a person. */
export interface Approver {
  readonly personId: PersonId
  readonly sessionId: SessionId
}

/** Shows a code to the session that opens it first, and from then on to no other. */
export async function openGrant(
  sql: Sql,
  hashes: readonly string[],
  approver: Approver,
  at: number,
): Promise<DeviceGrant> {
  const [current = '', previous = current] = hashes
  const grant = grantRow.first(
    await sql`SELECT * FROM device_grants WHERE user_code IN (${current}, ${previous}) FOR NO KEY UPDATE`,
  )
  if (!grant || grant.expiresAt <= at) throw unknownCode()
  if (grant.sessionId === undefined) {
    await sql`UPDATE device_grants SET session_id = ${approver.sessionId} WHERE id = ${grant.id}`
  } else if (grant.sessionId !== approver.sessionId) throw openedElsewhere()
  if (grant.state !== 'pending') throw decided(grant)
  return grant
}

/** Lets the device sign in as the person, in a project of a workspace in which they may call models. */
export async function approveGrant(
  sql: Sql,
  hashes: readonly string[],
  { approver, projectId }: { readonly approver: Approver; readonly projectId: string },
  act: Act,
): Promise<void> {
  const { personId } = approver
  // Locked, so that whatever ends the session waits for the approval, and then denies it.
  const [session] = await sql`SELECT id FROM console_sessions WHERE id = ${approver.sessionId} FOR NO KEY UPDATE`
  if (!session) throw sessionEnded()
  const grant = await openGrant(sql, hashes, approver, act.at)
  await checkMayUse(sql, personId, projectId)
  await sql`UPDATE device_grants SET state = 'approved', person_id = ${personId}, project_id = ${projectId}
    WHERE id = ${grant.id}`
  const details = { project: projectId, client: grant.client }
  await appendAudit(sql, { ...act, action: 'sign_in.approve', object: grant.id, details })
}

async function mayUse(sql: Sql, personId: PersonId, projectId: string): Promise<boolean> {
  try {
    await checkMayUse(sql, personId, projectId)
    return true
  } catch (thrown) {
    if (thrown instanceof Failure) return false
    throw thrown
  }
}

/** Throws a Failure if the person may not sign in to the project. */
async function checkMayUse(sql: Sql, personId: PersonId, projectId: string): Promise<void> {
  const project = await lockProject(sql, projectId)
  const roles = (await grantsOf(sql, personId)).filter(
    ({ role, workspaceId }) => role === 'operator' || workspaceId === project.workspaceId,
  )
  // The same answer as for a project that does not exist.
  if (roles.length === 0) throw notFound('project', projectId)
  if (roles.every(({ role }) => role === 'viewer')) throw viewersCannot()
  checkInUse(project)
}

export async function denyGrant(sql: Sql, hashes: readonly string[], approver: Approver, act: Act): Promise<void> {
  const grant = await openGrant(sql, hashes, approver, act.at)
  await sql`UPDATE device_grants SET state = 'denied' WHERE id = ${grant.id}`
  await appendAudit(sql, { ...act, action: 'sign_in.deny', object: grant.id, details: { client: grant.client } })
}

export function unknownCode(): Failure {
  const message = 'No device waits with this code: it was mistyped, or is older than ten minutes.'
  return new Failure('NOT_FOUND', `${message} Look at the device, or start the sign-in there again.`, { param: 'code' })
}

function openedElsewhere(): Failure {
  const message = 'This code was opened in another browser or sign-in, which alone can approve it.'
  return new Failure('FORBIDDEN', `${message} Start the sign-in on the device again for a new code.`, { param: 'code' })
}

function decided({ state }: DeviceGrant): Failure {
  const message = `This code was already ${state === 'denied' ? 'denied' : 'approved'}.`
  return new Failure('INVALID_REQUEST', `${message} Start the sign-in on the device again for a new code.`, {
    param: 'code',
  })
}

function sessionEnded(): Failure {
  return new Failure('UNAUTHORIZED', 'Your session has ended. Sign in to the console again, and repeat it.')
}

function viewersCannot(): Failure {
  const message = 'Your role in this workspace is viewer, which does not include model calls.'
  return new Failure('FORBIDDEN', `${message} Ask an admin of the workspace for the role member.`)
}
