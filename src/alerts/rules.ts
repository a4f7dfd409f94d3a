// Alert rules: what is watched, from which threshold on, and who gets the alert. Rules of a workspace watch that workspace;
// rules of the installation watch all of them. Functions that write run inside the caller's transaction and add an audit
// entry to it.

import { type AlertKind, percentRuleKinds, type RuleKind, ruleKindOf, workspaceRuleKinds } from '../kernel/alert.ts'
import { invalidRequest } from '../kernel/failure.ts'
import { createId, isId, type PersonId, type WorkspaceId } from '../kernel/ids.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import type { Role } from '../kernel/roles.ts'
import { amount, count, type ItemIn, json, optional, rowFormat, text, time } from '../store/columns.ts'
import { templateOf } from '../store/insert-rows.ts'
import type { Sql } from '../store/sql.ts'
import { appendAudit } from '../tenancy/audit.ts'
import {
  type Act,
  afterCursor,
  notFound,
  type Page,
  type PageQuery,
  pageOf,
  rowsWanted,
} from '../tenancy/management.ts'
import { checkEmail } from '../tenancy/people.ts'

export const ruleRow = rowFormat({
  id: text(),
  /** undefined = of the installation: it watches all workspaces. */
  workspaceId: optional(text<WorkspaceId>()),
  kind: text<RuleKind>(),
  /** Of `balance.low` only. */
  below: optional(amount),
  /** Of `percentRuleKinds` only: whole percentages, ascending. */
  percents: optional(json<readonly number[]>()),
  /** Only for `credit.expiring`: how many days before the credit expires. */
  days: optional(count),
  /** The key, project or workspace whose limits are watched, or the person or group whom they limit; undefined = all of them. */
  scopeId: optional(text()),
  roles: json<readonly Role[]>(),
  /** In lower case. */
  emails: json<readonly string[]>(),
  /** Ids. */
  webhooks: json<readonly string[]>(),
  createdAt: time,
})

export type AlertRule = ItemIn<typeof ruleRow>

/** Which addresses the rules of a workspace may name besides those of its people. */
export interface MailPolicy {
  /** In lower case. */
  readonly domains: readonly string[]
}

// ── Reading ──

export interface RuleFilter {
  readonly workspaceId?: WorkspaceId | undefined
  /** Only those of the installation. */
  readonly isInstallation?: boolean
}

/** Oldest first. */
export async function listRules(sql: Sql, page: PageQuery, filter: RuleFilter): Promise<Page<AlertRule>> {
  const { workspaceId, isInstallation = false } = filter
  const [after, limit] = [afterCursor(page), rowsWanted(page)]
  const rows = await (workspaceId !== undefined
    ? sql`SELECT * FROM alert_rules WHERE workspace_id = ${workspaceId} AND id > ${after} ORDER BY id LIMIT ${limit}`
    : isInstallation
      ? sql`SELECT * FROM alert_rules WHERE workspace_id IS NULL AND id > ${after} ORDER BY id LIMIT ${limit}`
      : sql`SELECT * FROM alert_rules WHERE id > ${after} ORDER BY id LIMIT ${limit}`)
  return pageOf(ruleRow.all(rows), page)
}

export async function getRule(sql: Sql, id: string): Promise<AlertRule> {
  const rule = ruleRow.first(await sql`SELECT * FROM alert_rules WHERE id = ${id}`)
  if (!rule) throw notFound('rule', id)
  return rule
}

/** The rules of the installation, and with a workspace also its own. */
export async function rulesFor(sql: Sql, kind: AlertKind, workspaceId?: WorkspaceId): Promise<readonly AlertRule[]> {
  const wanted = ruleKindOf(kind)
  if (wanted === undefined) return []
  return ruleRow.all(
    await sql`SELECT * FROM alert_rules WHERE kind = ${wanted}
    AND (workspace_id IS NULL OR workspace_id = ${workspaceId ?? ''}) ORDER BY id`,
  )
}

/** By workspace; `undefined` has those of the installation. */
export async function limitRulesOf(
  sql: Sql,
  workspaceIds: readonly WorkspaceId[],
): Promise<ReadonlyMap<WorkspaceId | undefined, readonly AlertRule[]>> {
  const [first = '', ...others] = workspaceIds
  const before = `SELECT * FROM alert_rules WHERE kind = 'limit.reached' AND (workspace_id IS NULL OR workspace_id IN (`
  const template = templateOf([before, ...others.map(() => ', '), ')) ORDER BY id'])
  return Map.groupBy(ruleRow.all(await sql(template, first, ...others)), ({ workspaceId }) => workspaceId)
}

// ── Changing ──

export type RuleInput = Omit<AlertRule, 'id' | 'createdAt'>

const perWorkspaceMax = 50

export async function createRule(sql: Sql, input: RuleInput, policy: MailPolicy, act: Act): Promise<AlertRule> {
  const { workspaceId } = input
  const earlier = await sql`SELECT id FROM alert_rules WHERE COALESCE(workspace_id, '') = ${workspaceId ?? ''}
    LIMIT ${BigInt(perWorkspaceMax)}`
  if (earlier.length === perWorkspaceMax) {
    throw invalidRequest(`There are ${perWorkspaceMax} rules already. Delete one that is not needed.`)
  }
  const rule = { ...(await checkedRule(sql, input, policy)), id: createId('rul'), createdAt: act.at }
  await sql`INSERT INTO alert_rules ${sql([ruleRow.write(rule)])}`
  await appendAudit(sql, { ...act, action: 'alert_rule.create', object: rule.id, details: auditDetails(rule) })
  return rule
}

/** Omitted fields stay unchanged; the kind and the workspace of a rule never change. */
export async function updateRule(
  sql: Sql,
  id: string,
  { change, policy, act }: { readonly change: Partial<RuleInput>; readonly policy: MailPolicy; readonly act: Act },
): Promise<AlertRule> {
  const known = await getRule(sql, id)
  const rule = { ...known, ...(await checkedRule(sql, { ...known, ...change }, policy)) }
  const { below, percents, days, scope_id, roles, emails, webhooks } = ruleRow.write(rule)
  await sql`UPDATE alert_rules SET below = ${below ?? null}, percents = ${percents ?? null}, days = ${days ?? null},
    scope_id = ${scope_id ?? null}, roles = ${roles ?? '[]'}, emails = ${emails ?? '[]'}, webhooks = ${webhooks ?? '[]'}
    WHERE id = ${rule.id}`
  await appendAudit(sql, { ...act, action: 'alert_rule.update', object: rule.id, details: auditDetails(rule) })
  return rule
}

export async function deleteRule(sql: Sql, id: string, act: Act): Promise<void> {
  const rule = await getRule(sql, id)
  await sql`DELETE FROM alert_rules WHERE id = ${rule.id}`
  await appendAudit(sql, { ...act, action: 'alert_rule.delete', object: rule.id, details: auditDetails(rule) })
}

/** Addresses are counted, not named: the audit log cannot be erased. */
function auditDetails({ workspaceId, kind, below, percents, days, scopeId, roles, emails, webhooks }: AlertRule) {
  return {
    ...{ workspace: workspaceId ?? null, kind, scope_id: scopeId ?? null, roles, emails: emails.length, webhooks },
    ...(below !== undefined && { below: formatUsd(below) }),
    ...(percents && { percents }),
    ...(days !== undefined && { days }),
  }
}

/** Before a webhook is deleted. */
export async function forgetWebhook(sql: Sql, webhookId: string): Promise<void> {
  const named = ruleRow.all(await sql`SELECT * FROM alert_rules WHERE webhooks LIKE ${`%"${webhookId}"%`}`)
  for (const { id, webhooks } of named) {
    const others = JSON.stringify(webhooks.filter((each) => each !== webhookId))
    await sql`UPDATE alert_rules SET webhooks = ${others} WHERE id = ${id}`
  }
}

// ── Checking ──

/** Throws a Failure that names the field; otherwise the rule as it is stored. */
async function checkedRule(sql: Sql, input: RuleInput, policy: MailPolicy): Promise<RuleInput> {
  const { workspaceId, kind } = input
  if (workspaceId !== undefined && !workspaceRuleKinds.has(kind)) {
    const message = `\`kind\` of a workspace's rule must be ${[...workspaceRuleKinds].join(', ')}; ${kind} is about the installation, so only an operator can have a rule for it, without a workspace.`
    throw invalidRequest(message, 'kind')
  }
  checkThresholds(input)
  await checkScope(sql, input)
  checkRoles(input)
  const emails = [...new Set(input.emails.map((email) => checkEmail(email, 'emails')))]
  if (workspaceId !== undefined) await checkAddresses(sql, emails, workspaceId, policy)
  const webhooks = [...new Set(input.webhooks)]
  await checkWebhooks(sql, webhooks, workspaceId)
  const percents = input.percents && [...new Set(input.percents)].sort((a, b) => a - b)
  return { ...input, percents, roles: [...new Set(input.roles)], emails, webhooks }
}

function checkThresholds({ kind, below, percents, days }: RuleInput): void {
  if (kind === 'balance.low' && (below === undefined || below <= 0n)) {
    throw invalidRequest(
      '`below` must be a balance above 0 in USD such as "20.00". For no alert, delete the rule.',
      'below',
    )
  }
  if (kind !== 'balance.low' && below !== undefined) {
    throw invalidRequest(`\`below\` is for rules of the kind balance.low, not ${kind}.`, 'below')
  }
  const isPercent = (percent: number) => Number.isInteger(percent) && percent >= 1 && percent <= 100
  if (percentRuleKinds.has(kind) && (percents === undefined || percents.length === 0 || !percents.every(isPercent))) {
    throw invalidRequest('`percents` must be whole numbers from 1 to 100, such as [80, 100].', 'percents')
  }
  if (!percentRuleKinds.has(kind) && percents !== undefined) {
    const kinds = [...percentRuleKinds].join(' or ')
    throw invalidRequest(`\`percents\` is for rules of the kind ${kinds}, not ${kind}.`, 'percents')
  }
  if (kind === 'credit.expiring' && days === undefined) {
    throw invalidRequest('`days` must say how many days before credit expires the alert is raised, such as 3.', 'days')
  }
  if (kind !== 'credit.expiring' && days !== undefined) {
    throw invalidRequest(`\`days\` is for rules of the kind credit.expiring, not ${kind}.`, 'days')
  }
}

const scopeTables = { key: 'api_keys', prj: 'projects', grp: 'groups' } as const

/** The workspaces to which the object belongs. */
async function placesOf(sql: Sql, scopeId: string): Promise<readonly string[]> {
  const prefix = (['key', 'prj', 'grp'] as const).find((each) => isId(each, scopeId))
  const rows =
    prefix !== undefined
      ? await sql<{
          place: string
        }>`SELECT workspace_id AS place FROM ${sql(scopeTables[prefix])} WHERE id = ${scopeId}`
      : isId('per', scopeId)
        ? await sql<{
            place: string
          }>`SELECT COALESCE(workspace_id, '') AS place FROM members WHERE person_id = ${scopeId}`
        : await sql<{ place: string }>`SELECT id AS place FROM workspaces WHERE id = ${scopeId}`
  return rows.map(({ place }) => place)
}

async function checkScope(sql: Sql, { kind, scopeId, workspaceId }: RuleInput): Promise<void> {
  if (scopeId === undefined) return
  if (kind !== 'limit.reached') {
    throw invalidRequest(`\`scope_id\` is for rules of the kind limit.reached, not ${kind}.`, 'scope_id')
  }
  const places = await placesOf(sql, scopeId)
  if (workspaceId === undefined ? places.length > 0 : places.includes(workspaceId)) return
  const place = workspaceId === undefined ? '' : ' in this workspace'
  const message = `There is no key, project, workspace, person or group ${scopeId.slice(0, 60)}${place}. Leave out \`scope_id\` to watch the limits of all of them.`
  throw invalidRequest(message, 'scope_id')
}

function checkRoles({ roles, workspaceId }: RuleInput): void {
  const known: readonly Role[] = workspaceId === undefined ? ['operator'] : ['admin', 'viewer']
  const wrong = roles.find((role) => !known.includes(role))
  if (wrong === undefined) return
  const whose = workspaceId === undefined ? 'of the installation' : 'of a workspace'
  throw invalidRequest(`\`roles\` of a rule ${whose} must be ${known.join(' or ')}, not ${wrong}.`, 'roles')
}

/** Otherwise a tenant could have the gateway send mail to anyone. */
async function checkAddresses(
  sql: Sql,
  emails: readonly string[],
  workspaceId: WorkspaceId,
  policy: MailPolicy,
): Promise<void> {
  for (const email of emails) {
    if (isInDomain(email, policy)) continue
    const [member] = await sql`SELECT m.id FROM members m JOIN people p ON p.id = m.person_id
      WHERE p.email = ${email} AND m.workspace_id = ${workspaceId}`
    if (member) continue
    const message = `${email} has no role in this workspace. Invite the person first, or ask the operator to add the domain to \`alerts.email_domains\`.`
    throw invalidRequest(message, 'emails')
  }
}

function isInDomain(email: string, { domains }: MailPolicy): boolean {
  return domains.includes(email.slice(email.lastIndexOf('@') + 1))
}

async function checkWebhooks(sql: Sql, ids: readonly string[], workspaceId: WorkspaceId | undefined): Promise<void> {
  for (const id of ids) {
    const [hook] = await sql`SELECT id FROM webhooks WHERE id = ${id}
      AND COALESCE(workspace_id, '') = ${workspaceId ?? ''}`
    if (hook) continue
    const place = workspaceId === undefined ? 'of the installation' : 'in this workspace'
    throw invalidRequest(`There is no webhook ${id.slice(0, 60)} ${place}. Create it first.`, 'webhooks')
  }
}

// ── Recipients ──

export interface Recipients {
  readonly people: readonly PersonId[]
  /** Addresses that are not of a person here. */
  readonly addresses: readonly { readonly email: string; readonly ruleId: string }[]
}

interface Candidate {
  readonly person_id: PersonId
  readonly workspace_id: WorkspaceId | null
  readonly email: string
  readonly role: Role
  readonly kinds: string | null
}

/** Who gets an alert by e-mail: whom its rules name. What people chose for themselves goes first. */
export async function recipientsOf(
  sql: Sql,
  { kind, workspaceId }: { readonly kind: AlertKind; readonly workspaceId: WorkspaceId | undefined },
  { rules, policy }: { readonly rules: readonly AlertRule[]; readonly policy: MailPolicy },
): Promise<Recipients> {
  const candidates = await sql<Candidate>`SELECT m.person_id, m.workspace_id, m.role, p.email, r.kinds FROM members m
      JOIN people p ON p.id = m.person_id LEFT JOIN alert_readers r ON r.reader = m.person_id
    WHERE m.role = 'operator' OR m.workspace_id = ${workspaceId ?? ''}`
  const isNamed = ({ role, workspace_id: place, email }: Candidate) =>
    rules.some((rule) => {
      if (rule.roles.includes(role)) return true
      const isAllowed = rule.workspaceId === undefined || rule.workspaceId === place || isInDomain(email, policy)
      return rule.emails.includes(email) && isAllowed
    })
  const wants = (each: Candidate) => {
    if (each.kinds === null) return isNamed(each)
    // Members may not read alerts, so they get only those that a rule sends them.
    return (JSON.parse(each.kinds) as string[]).includes(kind) && (each.role !== 'member' || isNamed(each))
  }
  const known = new Set(candidates.map(({ email }) => email))
  const addresses = rules.flatMap((rule) =>
    rule.emails
      .filter((email) => !known.has(email) && (rule.workspaceId === undefined || isInDomain(email, policy)))
      .map((email) => ({ email, ruleId: rule.id })),
  )
  return {
    people: [...new Set(candidates.filter(wants).map(({ person_id }) => person_id))],
    addresses: [...new Map(addresses.map((each) => [each.email, each])).values()],
  }
}

/** The highest percentage of a rule that the spend has reached; undefined = none. */
export function reachedPercent({ percents = [] }: AlertRule, spent: bigint, cap: Nano): number | undefined {
  return percents.findLast((percent) => spent * 100n >= cap * BigInt(percent))
}
