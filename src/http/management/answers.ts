// Renders stored objects as the API answers them. Times are ISO 8601, amounts decimal strings in USD, absent values null.
// No secret passes through here; only the handlers that create a key add its `secret`.

import type { AnswerOf, BodyOf, ItemOf } from '../../api/client.ts'
import { listAnswer } from '../../api/fields.ts'
import type { CheckedBody } from '../../api/operation.ts'
import type { Operations } from '../../api/operations.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd } from '../../kernel/money.ts'
import { walletOf } from '../../ledger/account.ts'
import type { Wallet } from '../../ledger/ledger.ts'
import type { Transfer } from '../../ledger/transfer.ts'
import type { AuditRow } from '../../tenancy/audit.ts'
import type { CredentialSummary } from '../../tenancy/credentials.ts'
import type { KeyInfo } from '../../tenancy/keys.ts'
import type { Limits } from '../../tenancy/limits.ts'
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
  return given({
    requestsPerMinute: body.requests_per_minute,
    tokensPerMinute: body.tokens_per_minute,
    concurrentRequests: body.concurrent_requests,
    spendPerDay: body.spend_per_day,
    spendPerMonth: body.spend_per_month,
  })
}

export function limitsAnswer(limits: Limits): BodyOf<'putKeyLimits'> {
  return given({
    requests_per_minute: limits.requestsPerMinute,
    tokens_per_minute: limits.tokensPerMinute,
    concurrent_requests: limits.concurrentRequests,
    spend_per_day: limits.spendPerDay === undefined ? undefined : formatUsd(limits.spendPerDay),
    spend_per_month: limits.spendPerMonth === undefined ? undefined : formatUsd(limits.spendPerMonth),
  })
}

export function workspaceAnswer(workspace: Workspace): AnswerOf<'getWorkspace'> {
  return {
    id: workspace.id,
    name: workspace.name,
    limits: limitsAnswer(workspace.limits),
    shares_routes: workspace.sharesRoutes,
    managed_by: workspace.managedBy,
    created_at: isoTime(workspace.createdAt),
  }
}

export function projectAnswer(project: Project): AnswerOf<'getProject'> {
  return {
    id: project.id,
    workspace_id: project.workspaceId,
    name: project.name,
    models: project.models === undefined ? null : [...project.models],
    limits: limitsAnswer(project.limits),
    managed_by: project.managedBy,
    created_at: isoTime(project.createdAt),
  }
}

export function keyAnswer(key: KeyInfo, now: number): AnswerOf<'getKey'> {
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
    managed_by: key.managedBy,
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
