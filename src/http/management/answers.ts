// Renders stored objects as the API answers them. Times are ISO 8601, amounts decimal strings in USD, absent values null.
// No secret passes through here; only the handlers that create a key add its `secret`.

import type { AnswerOf, BodyOf, ItemOf } from '../../api/client.ts'
import { listAnswer } from '../../api/fields.ts'
import type { CheckedBody } from '../../api/operation.ts'
import type { Operations } from '../../api/operations.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd, type Nano, zeroNano } from '../../kernel/money.ts'
import { walletOf } from '../../ledger/account.ts'
import { windowAt, windowEnd, windowStart } from '../../ledger/budget.ts'
import type { Wallet } from '../../ledger/ledger.ts'
import type { Transfer } from '../../ledger/transfer.ts'
import { templateOf } from '../../store/insert-rows.ts'
import type { Sql } from '../../store/sql.ts'
import type { AuditRow } from '../../tenancy/audit.ts'
import type { CredentialSummary } from '../../tenancy/credentials.ts'
import type { KeyInfo } from '../../tenancy/keys.ts'
import { type Limits, limitNames, shownLimits, spendLimits } from '../../tenancy/limits.ts'
import type { Page, PageQuery } from '../../tenancy/management.ts'
import type { Project, Workspace } from '../../tenancy/workspaces.ts'

/** Leaves out members that are null or undefined: the stores expect absent members. */
export function given<Members extends object>(
  members: Members,
): { [Name in keyof Members]?: NonNullable<Members[Name]> } {
  const entries = Object.entries(members).filter(([, value]) => value != null)
  return Object.fromEntries(entries) as { [Name in keyof Members]?: NonNullable<Members[Name]> }
}

export function pageOf({ limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined }) {
  return { limit, ...given({ cursor }) }
}

export function pageAnswer<Item, Answered>({ items, nextCursor }: Page<Item>, render: (item: Item) => Answered) {
  return listAnswer(items.map(render), nextCursor)
}

const pageSize = 200

/** Page by page, so that a year of requests is never in memory at once. */
export async function* everyPage<Item>(
  read: (page: PageQuery) => Promise<Page<Item>>,
): AsyncGenerator<readonly Item[]> {
  let cursor: string | undefined
  do {
    const page = await read(pageOf({ limit: pageSize, cursor }))
    yield page.items
    cursor = page.nextCursor
  } while (cursor !== undefined)
}

export function limitsFromBody(body: CheckedBody<Operations['putKeyLimits']>): Limits {
  return given(Object.fromEntries(limitNames.map(({ field, name }) => [field, body[name]])))
}

export function limitsAnswer(limits: Limits): BodyOf<'putKeyLimits'> {
  return shownLimits(limits)
}

/** The spend of scopes, by scope and window. */
export type Spent = (scopeId: string, window: string) => Nano

/** The spend of a new scope. */
const nothingSpent: Spent = () => zeroNano

/** One query for all scopes of a page. */
export async function readSpent(sql: Sql, scopes: readonly { readonly id: string; readonly limits: Limits }[]) {
  const limited = scopes.filter(({ limits }) => spendLimits(limits).some(({ cap }) => cap !== undefined))
  if (limited.length === 0) return nothingSpent
  const ids = limited.map(({ id }) => id)
  const text = ['SELECT scope_id, time_window, spent FROM budgets WHERE scope_id IN (', ...ids.slice(1).fill(', '), ')']
  const rows = await sql<{ scope_id: string; time_window: string; spent: bigint }>(templateOf(text), ...ids)
  const spent = new Map(rows.map((row) => [`${row.scope_id} ${row.time_window}`, row.spent as Nano]))
  return (scopeId: string, window: string) => spent.get(`${scopeId} ${window}`) ?? zeroNano
}

/** The state of the spend limits of a key, project or workspace. */
function spendAnswer({ id, limits }: { readonly id: string; readonly limits: Limits }, now: number, spent: Spent) {
  return spendLimits(limits).flatMap(({ period, cap }) => {
    if (cap === undefined) return []
    const { startsAt = 0 } = limits
    const window = windowAt(period, Math.max(now, startsAt), startsAt)
    const [start = 0, end = 0] = [windowStart(window), windowEnd(window)]
    const amounts = { limit: formatUsd(cap), spent: formatUsd(spent(id, window)) }
    return [{ period, ...amounts, starts_at: isoTime(start), resets_at: isoTime(end) }]
  })
}

export function workspaceAnswer(workspace: Workspace, now: number, spent = nothingSpent): AnswerOf<'getWorkspace'> {
  return {
    id: workspace.id,
    name: workspace.name,
    limits: limitsAnswer(workspace.limits),
    spend: spendAnswer(workspace, now, spent),
    shares_routes: workspace.sharesRoutes,
    low_balance: formatUsd(workspace.lowBalance),
    price_list: workspace.priceList ?? null,
    managed_by: workspace.managedBy,
    created_at: isoTime(workspace.createdAt),
  }
}

export function projectAnswer(project: Project, now: number, spent = nothingSpent): AnswerOf<'getProject'> {
  return {
    id: project.id,
    workspace_id: project.workspaceId,
    name: project.name,
    models: project.models === undefined ? null : [...project.models],
    aliases: { ...project.aliases },
    limits: limitsAnswer(project.limits),
    spend: spendAnswer(project, now, spent),
    managed_by: project.managedBy,
    created_at: isoTime(project.createdAt),
  }
}

export function keyAnswer(key: KeyInfo, now: number, spent = nothingSpent): AnswerOf<'getKey'> {
  return {
    id: key.id,
    workspace_id: key.workspaceId,
    project_id: key.projectId,
    name: key.name,
    last4: key.last4,
    status: keyStatus(key, now),
    models: key.models === undefined ? null : [...key.models],
    sources: key.sources === undefined ? null : [...key.sources],
    limits: limitsAnswer(key.limits),
    spend: spendAnswer(key, now, spent),
    managed_by: key.managedBy,
    owner_id: key.ownerId ?? null,
    created_at: isoTime(key.createdAt),
    expires_at: timeOrNull(key.expiresAt),
    revoked_at: timeOrNull(key.revokedAt),
    last_used_at: timeOrNull(key.lastUsedAt),
  }
}

function keyStatus({ revokedAt, expiresAt }: KeyInfo, now: number): 'active' | 'expired' | 'revoked' {
  if (revokedAt !== undefined && revokedAt <= now) return 'revoked'
  return expiresAt !== undefined && expiresAt <= now ? 'expired' : 'active'
}

export function walletAnswer({ posted, held, available }: Wallet): AnswerOf<'getWallet'> {
  return {
    balance: formatUsd(posted),
    held: formatUsd(held),
    available: formatUsd(available),
    currency: 'USD',
  }
}

export function transferAnswer(transfer: Transfer, workspaceId: WorkspaceId): ItemOf<'listTransfers'> {
  return {
    id: transfer.id,
    kind: transfer.kind,
    direction: transfer.creditAccount === walletOf(workspaceId) ? 'in' : 'out',
    amount: formatUsd(transfer.amount),
    request_id: transfer.requestId ?? null,
    reference: transfer.reference ?? null,
    price_version: transfer.priceVersion ?? null,
    usage: transfer.usage === undefined ? null : JSON.parse(transfer.usage),
    estimated: transfer.estimated,
    created_at: isoTime(transfer.createdAt),
  }
}

export function credentialAnswer(credential: CredentialSummary): AnswerOf<'getCredential'> {
  return {
    id: credential.id,
    provider: credential.provider,
    last4: credential.last4,
    base_url: credential.baseUrl ?? null,
    created_at: isoTime(credential.createdAt),
    updated_at: isoTime(credential.updatedAt),
  }
}

export function auditAnswer(row: AuditRow): ItemOf<'listAudit'> {
  const { sequence, at, actor, action, object, details, requestId, hash } = row
  return { sequence, at: isoTime(at), actor, action, object, details, request_id: requestId ?? null, hash }
}

function timeOrNull(epochMs: number | undefined): string | null {
  return epochMs === undefined ? null : isoTime(epochMs)
}
