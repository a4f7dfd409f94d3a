// The caller of a request: looked up by the verifier of its key, or by the sign-in that its access token names, and cached.
// The result says what is stored, not whether the key or token is valid: that depends on the time and is checked for every
// request.

import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import type { GroupId, KeyId, PersonId, ProjectId, SignInId, WorkspaceId } from '../kernel/ids.ts'
import type { IpRange } from '../kernel/ip-range.ts'
import type { Role } from '../kernel/roles.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql } from '../store/sql.ts'
import type { ReadToken } from './access-tokens.ts'
import { type Allowlist, aliasesFromSql, createAllowlistPool, listFromSql, rangesOf } from './allowlist.ts'
import { personKeyName } from './keys.ts'
import { hasLimits, type LimitScope, type Limits, limitsConcerning, limitsFromSql } from './limits.ts'
import { LoadingCache } from './loading-cache.ts'

/**
 * As everything after authentication sees it. Holds no secret and no part of one. Created once for each cached key and
 * never changed.
 */
export interface Caller {
  readonly keyId: KeyId
  readonly keyName: string
  readonly projectId: ProjectId
  readonly projectName: string
  readonly workspaceId: WorkspaceId
  readonly workspaceName: string
  /** Allowlists of the project and of the key, if they have one; a model must be in all of them. Empty = every model. */
  readonly allow: readonly Allowlist[]
  /** Aliases of the project: further names of models. Absent = none. */
  readonly aliases?: Readonly<Record<string, string>> | undefined
  /** Whose key it is; absent = the installation's. */
  readonly person?: { readonly id: PersonId; readonly email: string | undefined } | undefined
  /** In which the key or its person is; absent = none. */
  readonly groups?: readonly GroupOfCaller[] | undefined
  /** The limits of key, project and workspace that can concern it; the tightest applies. */
  readonly limits: readonly LimitScope[]
  /** Whether routes on the operator's credentials may be tried after those on the workspace's own. */
  readonly sharesRoutes: boolean
  /** Whether its prompts and answers are sent to the operator's collector, if there is one. Absent = no. */
  readonly exportsContent?: boolean | undefined
  /** Hashes the ids of its end users; undefined = they are not recorded. */
  readonly endUserSalt?: string | undefined
  /** Addresses the key may be used from; undefined = anywhere. See `allowsSource`. */
  readonly sources: readonly IpRange[] | undefined
  /** The price list of the workspace; undefined = it pays the prices of the catalog. */
  readonly priceList: string | undefined
}

export interface GroupOfCaller {
  readonly id: GroupId
  readonly name: string
}

export interface StoredKey {
  readonly caller: Caller
  /** undefined = never. */
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  /** Set if the secret was replaced by a newer one of the same key. */
  readonly rotated: { readonly at: number; readonly endsAt: number } | undefined
  /** Set if it was found by an access token. `revokedAt` is then also the end of the sign-in, `expiresAt` the token's. */
  readonly signIn?: SignInOfToken
}

export interface SignInOfToken {
  readonly id: SignInId
  readonly personId: PersonId
  readonly email: string
  /** In the key's workspace, now. */
  readonly role: Role | undefined
}

interface SecretRow extends KeyRow {
  readonly verifier: string
  readonly rotated_at: bigint | null
  readonly ends_at: bigint | null
}

interface SignInRow extends KeyRow {
  readonly ended_at: bigint | null
  readonly ends_at: bigint
  readonly email: string
  readonly operator: Role | null
  readonly role: Role | null
}

interface KeyRow {
  readonly key_id: KeyId
  readonly key_name: string
  readonly expires_at: bigint | null
  readonly revoked_at: bigint | null
  readonly key_models: string | null
  readonly key_limits: string | null
  readonly sources: string | null
  readonly project_id: ProjectId
  readonly project_name: string
  readonly project_models: string | null
  readonly project_aliases: string | null
  readonly project_limits: string | null
  readonly exports_content: bigint
  readonly workspace_id: WorkspaceId
  readonly workspace_name: string
  readonly workspace_limits: string | null
  readonly shares_routes: bigint
  readonly price_list: string | null
  readonly end_user_salt: string | null
  readonly owner_id: PersonId | null
  readonly owner_email: string | null
  /** `grp_… name`, one to a line. */
  readonly groups: string | null
}

/** `previous`: the verifier under the pepper of the previous master secret, during a rotation. */
export type FindKey = (verifier: string, previous?: string) => Promise<StoredKey | undefined>

/** The verifier of a key that was found under the previous pepper. */
export interface StaleVerifier {
  readonly stored: string
  readonly replacement: string
}

/** `keyLimits`: the limits of keys that set none themselves. `onStale` must be cheap. */
export function createFindKey(
  database: Database,
  keyLimits: () => Limits,
  onStale: (stale: StaleVerifier) => void = () => {},
): FindKey {
  const callerOf = createCallerOf(keyLimits)
  return async (verifier, previous = verifier) => {
    const row = await readKey(database, verifier, previous)
    if (row === undefined) return undefined
    // The database compares by its own rules (collation, early exit); this comparison takes constant time.
    if (!sameVerifier(row.verifier, verifier)) {
      if (!sameVerifier(row.verifier, previous)) return undefined
      onStale({ stored: row.verifier, replacement: verifier })
    }
    return {
      caller: callerOf(row),
      expiresAt: timeFromSql(row.expires_at),
      revokedAt: timeFromSql(row.revoked_at),
      rotated:
        row.rotated_at === null || row.ends_at === null
          ? undefined
          : { at: timeFromSql(row.rotated_at), endsAt: timeFromSql(row.ends_at) },
    }
  }
}

function createCallerOf(keyLimits: () => Limits): (row: KeyRow) => Caller {
  const allowlistOf = createAllowlistPool()
  const shared = createTextPool()
  return (row) => {
    const groups = groupsOf(row)
    return Object.freeze({
      keyId: row.key_id,
      keyName: row.key_name,
      projectId: shared(row.project_id),
      projectName: shared(row.project_name),
      workspaceId: shared(row.workspace_id),
      workspaceName: shared(row.workspace_name),
      allow: allowlistsOf(row, allowlistOf),
      aliases: aliasesFromSql(row.project_aliases),
      person: row.owner_id === null ? undefined : { id: row.owner_id, email: row.owner_email ?? undefined },
      groups,
      limits: limitsOf(row, keyLimits(), groups),
      sharesRoutes: row.shares_routes === 1n,
      exportsContent: row.exports_content === 1n || undefined,
      endUserSalt: row.end_user_salt ?? undefined,
      sources: rangesOf(listFromSql(row.sources)),
      priceList: row.price_list ?? undefined,
    })
  }
}

/** The key with this id, for requests that the gateway makes for it; undefined = there is none. */
export function createFindKeyById(database: Database, keyLimits: () => Limits) {
  const callerOf = createCallerOf(keyLimits)
  return async (id: KeyId): Promise<StoredKey | undefined> => {
    const row = await readKeyById(database, id)
    return (
      row && {
        caller: callerOf(row.kind === 'person' ? { ...row, key_name: personKeyName(row.owner_email ?? '') } : row),
        expiresAt: timeFromSql(row.expires_at),
        revokedAt: timeFromSql(row.revoked_at),
        rotated: undefined,
        ...(row.kind === 'person' && {
          signIn: {
            ...{ id: 'sgn_' as SignInId, personId: row.owner_id ?? 'per_', email: row.owner_email ?? '' },
            role: row.operator ?? row.role ?? undefined,
          },
        }),
      }
    )
  }
}

interface RowById extends KeyRow {
  readonly kind: 'secret' | 'person'
  readonly operator: Role | null
  readonly role: Role | null
}

async function readKeyById({ sql }: Database, id: KeyId): Promise<RowById | undefined> {
  const [row] = await sql<RowById>`
    SELECT k.kind, k.id AS key_id, k.name AS key_name, k.expires_at, k.revoked_at, k.models AS key_models,
      k.limits AS key_limits, k.sources, op.role AS operator, m.role,
      p.id AS project_id, p.name AS project_name, p.models AS project_models, p.aliases AS project_aliases, p.limits AS project_limits, p.exports_content,
      w.id AS workspace_id, w.name AS workspace_name, w.limits AS workspace_limits, w.shares_routes,
      w.end_user_salt, w.price_list, k.owner_id, o.email AS owner_email, (SELECT string_agg(g.id || ' ' || g.name, ${'\n'})
        FROM group_members gm JOIN groups g ON g.id = gm.group_id
        WHERE gm.member_id IN (k.id, k.owner_id) AND g.workspace_id = w.id) AS groups
    FROM api_keys k JOIN projects p ON p.id = k.project_id JOIN workspaces w ON w.id = p.workspace_id
    LEFT JOIN people o ON o.id = k.owner_id
    LEFT JOIN members op ON op.person_id = k.owner_id AND op.workspace_id IS NULL
    LEFT JOIN members m ON m.person_id = k.owner_id AND m.workspace_id = w.id
    WHERE k.id = ${id}`
  return row
}

/** The key of a sign-in, with what the person may do now. undefined = there is no such sign-in any more. */
export type FindSignIn = (token: ReadToken) => Promise<StoredKey | undefined>

export function createFindSignIn(database: Database, keyLimits: () => Limits): FindSignIn {
  const callerOf = createCallerOf(keyLimits)
  return async ({ signInId, personId, expiresAt }) => {
    const row = await readSignIn(database, signInId, personId)
    return (
      row && {
        caller: callerOf({ ...row, key_name: personKeyName(row.email) }),
        expiresAt: Math.min(expiresAt, timeFromSql(row.ends_at)),
        revokedAt: timeFromSql(row.revoked_at ?? row.ended_at),
        rotated: undefined,
        signIn: { id: signInId, personId, email: row.email, role: row.operator ?? row.role ?? undefined },
      }
    )
  }
}

async function readSignIn({ sql }: Database, id: SignInId, personId: PersonId): Promise<SignInRow | undefined> {
  const [row] = await sql<SignInRow>`
    SELECT s.revoked_at AS ended_at, s.expires_at AS ends_at, o.email, op.role AS operator, m.role,
      k.id AS key_id, k.name AS key_name, k.expires_at, k.revoked_at, k.models AS key_models, k.limits AS key_limits, k.sources,
      p.id AS project_id, p.name AS project_name, p.models AS project_models, p.aliases AS project_aliases, p.limits AS project_limits, p.exports_content,
      w.id AS workspace_id, w.name AS workspace_name, w.limits AS workspace_limits, w.shares_routes,
      w.end_user_salt, w.price_list, k.owner_id, o.email AS owner_email, (SELECT string_agg(g.id || ' ' || g.name, ${'\n'})
        FROM group_members gm JOIN groups g ON g.id = gm.group_id
        WHERE gm.member_id IN (k.id, k.owner_id) AND g.workspace_id = w.id) AS groups
    FROM sign_ins s JOIN people o ON o.id = s.person_id
    JOIN api_keys k ON k.id = s.key_id JOIN projects p ON p.id = k.project_id
    JOIN workspaces w ON w.id = p.workspace_id
    LEFT JOIN members op ON op.person_id = s.person_id AND op.workspace_id IS NULL
    LEFT JOIN members m ON m.person_id = s.person_id AND m.workspace_id = w.id
    WHERE s.id = ${id} AND s.person_id = ${personId}`
  return row
}

/**
 * One statement, by unique indexes alone: the secret in use, or one that was replaced. Both peppers at once, because a
 * verifier that changes between two statements would be found by neither.
 */
async function readKey({ sql }: Database, verifier: string, previous: string): Promise<SecretRow | undefined> {
  const [row] = await sql<SecretRow>`
    SELECT s.verifier, s.rotated_at, s.ends_at, k.id AS key_id, k.name AS key_name, k.expires_at, k.revoked_at,
      k.models AS key_models, k.limits AS key_limits, k.sources,
      p.id AS project_id, p.name AS project_name, p.models AS project_models, p.aliases AS project_aliases, p.limits AS project_limits, p.exports_content,
      w.id AS workspace_id, w.name AS workspace_name, w.limits AS workspace_limits, w.shares_routes,
      w.end_user_salt, w.price_list, k.owner_id, (SELECT o.email FROM people o WHERE o.id = k.owner_id) AS owner_email,
      (SELECT string_agg(g.id || ' ' || g.name, ${'\n'}) FROM group_members gm JOIN groups g ON g.id = gm.group_id
        WHERE gm.member_id IN (k.id, k.owner_id) AND g.workspace_id = w.id) AS groups
    FROM (SELECT verifier, id AS key_id, CAST(NULL AS BIGINT) AS rotated_at, CAST(NULL AS BIGINT) AS ends_at
        FROM api_keys WHERE verifier IN (${verifier}, ${previous})
      UNION ALL SELECT verifier, key_id, rotated_at, ends_at FROM rotated_secrets
        WHERE verifier IN (${verifier}, ${previous})) s
    JOIN api_keys k ON k.id = s.key_id JOIN projects p ON p.id = k.project_id
    JOIN workspaces w ON w.id = p.workspace_id`
  return row
}

function sameVerifier(stored: string, computed: string): boolean {
  return stored.length === computed.length && timingSafeEqual(Buffer.from(stored), Buffer.from(computed))
}

const everyModel: readonly Allowlist[] = Object.freeze([])

function allowlistsOf(row: KeyRow, allowlistOf: (json: string | null) => Allowlist | undefined): readonly Allowlist[] {
  if (row.project_models === null && row.key_models === null) return everyModel
  return Object.freeze([row.project_models, row.key_models].map(allowlistOf).filter((list) => list !== undefined))
}

/** Lets the keys of one project share the same strings in memory. */
function createTextPool(): <Text extends string>(text: Text) => Text {
  const textsMax = 10_000
  const texts = new Map<string, string>()
  return <Text extends string>(text: Text) => {
    const known = texts.get(text)
    if (known !== undefined) return known as Text
    if (texts.size >= textsMax) texts.clear()
    texts.set(text, text)
    return text
  }
}

const unlimited: readonly LimitScope[] = Object.freeze([])

const noGroups: readonly GroupOfCaller[] = Object.freeze([])

function groupsOf({ groups }: KeyRow): readonly GroupOfCaller[] {
  if (groups === null) return noGroups
  // Twice, if the key and its person are both in it.
  const lines = [...new Set(groups.split('\n'))].sort()
  return Object.freeze(
    lines.map((line) => {
      const space = line.indexOf(' ')
      return Object.freeze({ id: line.slice(0, space) as GroupId, name: line.slice(space + 1) })
    }),
  )
}

function limitsOf(row: KeyRow, keyLimits: Limits, groups: readonly GroupOfCaller[]): readonly LimitScope[] {
  const ofKey = Object.freeze({ ...keyLimits, ...limitsFromSql(row.key_limits) })
  const scopes: LimitScope[] = [
    { kind: 'key', id: row.key_id, name: row.key_name, limits: ofKey },
    { kind: 'project', id: row.project_id, name: row.project_name, limits: limitsFromSql(row.project_limits) },
    { kind: 'workspace', id: row.workspace_id, name: row.workspace_name, limits: limitsFromSql(row.workspace_limits) },
  ]
  const whose = { personId: row.owner_id ?? undefined, groupIds: groups.map(({ id }) => id) }
  const concerning = scopes.map((scope) => ({ ...scope, limits: limitsConcerning(scope.limits, whose) }))
  const limited = concerning.filter(({ limits }) => hasLimits(limits))
  return limited.length === 0 ? unlimited : Object.freeze(limited.map((scope) => Object.freeze(scope)))
}

/** About 600 bytes each, 60 MB in all; a key with the longest lists takes some 20 KB. */
const cachedMax = 100_000
const unknownMax = 10_000

/** By the text of the key or token. Unknown keys are bounded separately: a flood of invented ones cannot push out those in use. */
export type KeyCache = LoadingCache<string, StoredKey | undefined>

export function createKeyCache(
  clock: Clock,
  ttlMs: number,
  load: (text: string) => Promise<StoredKey | undefined>,
): KeyCache {
  const separate = { max: unknownMax, has: (key: StoredKey | undefined) => key === undefined }
  return new LoadingCache({ clock, ttlMs, max: cachedMax, load, separate })
}

/** Whether the key has this id, or belongs to this project or workspace, or stands for this person. */
export function isKeyOf(key: StoredKey | undefined, id: KeyId | ProjectId | WorkspaceId | PersonId): boolean {
  if (!key) return false
  const { keyId, projectId, workspaceId } = key.caller
  return keyId === id || projectId === id || workspaceId === id || key.signIn?.personId === id
}

/** Rows in one transaction: on the embedded engine it delays the commits of settlements. */
const portionMax = 50
/** The others move when they are used again. */
const waitingMax = 10_000

/**
 * Moves keys from the pepper of the previous master secret to the current one, in the background. A key's secret is known
 * only while it is used, so each key moves when it is used.
 */
export function createRehash(database: Database, version: bigint): (stale: StaleVerifier) => void {
  /** By the verifier that is stored. */
  const waiting = new Map<string, string>()
  let isRunning = false

  async function run(): Promise<void> {
    isRunning = true
    try {
      while (waiting.size > 0) {
        const portion = [...waiting].slice(0, portionMax)
        for (const [stored] of portion) waiting.delete(stored)
        await database.transaction((sql) => move(sql, portion, version))
      }
    } catch {
      // The database is busy or closing. At its next use the key is found under the previous pepper again.
      waiting.clear()
    } finally {
      isRunning = false
    }
  }

  return ({ stored, replacement }) => {
    if (waiting.size < waitingMax) waiting.set(stored, replacement)
    if (!isRunning) void run()
  }
}

/** In one order on every replica, so that there is no deadlock. */
async function move(sql: Sql, portion: readonly (readonly [string, string])[], version: bigint): Promise<void> {
  for (const [stored, replacement] of portion.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const moved = await sql`UPDATE api_keys SET verifier = ${replacement}, pepper_version = ${version}
      WHERE verifier = ${stored} RETURNING id`
    if (moved.length > 0) continue
    await sql`UPDATE rotated_secrets SET verifier = ${replacement}, pepper_version = ${version}
      WHERE verifier = ${stored}`
  }
}
