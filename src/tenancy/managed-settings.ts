// Settings that the operator gives to Claude Code on people's machines: rules in order, each for everyone, for a role or for a
// group of the identity provider. The settings of all rules that match a person are merged, later ones over earlier ones.

import { createHash } from 'node:crypto'
import { invalidRequest } from '../kernel/failure.ts'
import type { KeyId } from '../kernel/ids.ts'
import type { Role } from '../kernel/roles.ts'
import { count, json, optional, rowFormat, text } from '../store/columns.ts'
import type { Sql } from '../store/sql.ts'
import { appendAudit, lockAudit } from './audit.ts'
import { type Act, checkManager, type ManagedBy, managerOf, notFound } from './management.ts'

export type SettingsObject = Readonly<Record<string, unknown>>

export interface SettingsRule {
  /** undefined = every role. */
  readonly role: Role | undefined
  /** A group as the identity provider names it; undefined = everyone, in a group or not. */
  readonly group: string | undefined
  readonly settings: SettingsObject
}

/** Whom settings are for. */
export interface SettingsReader {
  /** In the workspace of the key; undefined = none, as for a key of the installation. */
  readonly role: Role | undefined
  readonly groups: readonly string[]
}

export interface MergedSettings {
  readonly settings: SettingsObject
  /** `sha256:` and the hex digest of the settings with sorted names and without white space, as Claude Code checks it. */
  readonly checksum: string
}

const ruleRow = rowFormat({
  position: count,
  role: optional(text<Role>()),
  groupName: optional(text()),
  settings: json<SettingsObject>(),
  managedBy: text<ManagedBy>(),
})

export interface SettingsRules {
  readonly rules: readonly SettingsRule[]
  readonly managedBy: ManagedBy
}

const rulesMax = 100

export async function readSettingsRules(sql: Sql): Promise<SettingsRules> {
  const rows = ruleRow.all(await sql`SELECT * FROM managed_settings ORDER BY position`)
  const rules = rows.map(({ role, groupName: group, settings }) => ({ role, group, settings }))
  return { rules, managedBy: rows[0]?.managedBy ?? 'api' }
}

/** Replaces all rules. The audit log has no content: settings may hold a secret of the operator. */
export async function putSettingsRules(sql: Sql, rules: readonly SettingsRule[], act: Act): Promise<SettingsRules> {
  if (rules.length > rulesMax) throw invalidRequest(`There can be ${rulesMax} rules at most.`, 'rules')
  // Two replacements at the same moment follow one another.
  await lockAudit(sql)
  checkManager('list of managed settings', await readSettingsRules(sql), act)
  await sql`DELETE FROM managed_settings`
  const managedBy = managerOf(act)
  for (const [position, { role, group, settings }] of rules.entries()) {
    const row = ruleRow.write({ position, role, groupName: group, settings, managedBy })
    await sql`INSERT INTO managed_settings ${sql([row])}`
  }
  const details = { rules: rules.length, checksum: checksumOf(rules) }
  await appendAudit(sql, { ...act, action: 'managed_settings.put', object: 'managed settings', details })
  return { rules, managedBy }
}

/** What someone gets; undefined = no rule matches. */
export function mergeSettings(
  rules: readonly SettingsRule[],
  { role, groups }: SettingsReader,
): MergedSettings | undefined {
  const matching = rules.filter(
    (rule) =>
      (rule.role === undefined || rule.role === role) && (rule.group === undefined || groups.includes(rule.group)),
  )
  if (matching.length === 0) return undefined
  const settings = matching.reduce<SettingsObject>((merged, rule) => mergeObjects(merged, rule.settings), {})
  return { settings, checksum: checksumOf(settings) }
}

/** Objects are merged name by name. Anything else, lists included, is replaced. */
function mergeObjects(below: SettingsObject, above: SettingsObject): SettingsObject {
  const merged = new Map(Object.entries(below))
  for (const [name, value] of Object.entries(above)) {
    const known = merged.get(name)
    merged.set(name, isObject(known) && isObject(value) ? mergeObjects(known, value) : value)
  }
  // Unlike an assignment, this makes a member of `__proto__` too.
  return Object.fromEntries(merged)
}

function isObject(value: unknown): value is SettingsObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function checksumOf(value: unknown): string {
  return `sha256:${createHash('sha256')
    .update(JSON.stringify(sorted(value)))
    .digest('hex')}`
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, sorted(inner)]),
  )
}

/** The role and groups of the person who signed in with a key, or created it; or of a member. */
export async function settingsReaderOf(
  sql: Sql,
  by: { readonly keyId: KeyId } | { readonly memberId: string },
): Promise<SettingsReader> {
  const [row] = await ('keyId' in by
    ? sql<ReaderRow>`SELECT op.role AS operator, m.role, o.idp_groups FROM api_keys k JOIN people o ON o.id = k.owner_id
      LEFT JOIN members op ON op.person_id = o.id AND op.workspace_id IS NULL
      LEFT JOIN members m ON m.person_id = o.id AND m.workspace_id = k.workspace_id WHERE k.id = ${by.keyId}`
    : sql<ReaderRow>`SELECT op.role AS operator, m.role, o.idp_groups FROM members m JOIN people o ON o.id = m.person_id
      LEFT JOIN members op ON op.person_id = o.id AND op.workspace_id IS NULL WHERE m.id = ${by.memberId}`)
  if (!row && 'memberId' in by) throw notFound('member', by.memberId)
  return { role: row?.operator ?? row?.role ?? undefined, groups: JSON.parse(row?.idp_groups ?? '[]') }
}

interface ReaderRow {
  readonly operator: Role | null
  readonly role: Role | null
  readonly idp_groups: string | null
}
