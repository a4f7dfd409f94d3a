// What the management API says of each thing, as schema and as rendering side by side. Times are ISO 8601, amounts
// decimal strings in USD, absent is null; nothing here can carry a secret except `secret` of a key just made.

import { z } from 'zod'
import { isoTime } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd } from '../../kernel/money.ts'
import { walletOf } from '../../ledger/account.ts'
import type { Wallet } from '../../ledger/ledger.ts'
import type { Transfer } from '../../ledger/transfer.ts'
import type { AuditRow } from '../../tenancy/audit.ts'
import type { CredentialSummary } from '../../tenancy/credentials/credential.ts'
import type { KeyInfo } from '../../tenancy/keys.ts'
import type { Project } from '../../tenancy/projects.ts'
import type { Workspace } from '../../tenancy/workspaces.ts'
import { limitsAnswer, limitsField } from './fields.ts'

export const time = z.string().describe('ISO 8601, UTC.')
export const usd = z.string().describe('USD as a decimal string.')
const managedBy = z.enum(['api', 'file']).describe('`file` if the configuration file declares it.')
const models = z.array(z.string()).nullable().describe('null = every model.')

export const workspaceSchema = z.object({
  id: z.string(),
  name: z.string(),
  limits: limitsField,
  shares_routes: z.boolean().describe("Whether routes on the operator's credentials may follow those on its own."),
  managed_by: managedBy,
  created_at: time,
})

export function workspaceAnswer(workspace: Workspace): z.input<typeof workspaceSchema> {
  return {
    id: workspace.id,
    name: workspace.name,
    limits: limitsAnswer(workspace.limits),
    shares_routes: workspace.sharesRoutes,
    managed_by: workspace.managedBy,
    created_at: isoTime(workspace.createdAt),
  }
}

export const projectSchema = z.object({
  id: z.string(),
  workspace_id: z.string(),
  name: z.string(),
  models,
  limits: limitsField,
  managed_by: managedBy,
  created_at: time,
})

export function projectAnswer(project: Project): z.input<typeof projectSchema> {
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

export const keySchema = z.object({
  id: z.string(),
  workspace_id: z.string(),
  project_id: z.string(),
  name: z.string(),
  last4: z.string().describe('All that is shown of the secret.'),
  status: z.enum(['active', 'expired', 'revoked']),
  models,
  sources: z.array(z.string()).nullable().describe('null = from anywhere.'),
  limits: limitsField,
  managed_by: managedBy,
  created_at: time,
  expires_at: time.nullable(),
  revoked_at: time.nullable(),
  last_used_at: time.nullable().describe('To the minute or so.'),
})

export function keyAnswer(key: KeyInfo, now: number): z.input<typeof keySchema> {
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

export const keyWithSecretSchema = keySchema.extend({
  secret: z.string().describe('The key itself, `sk-tg-…`. Shown this once.'),
})

function keyStatus({ revokedAt, expiresAt }: KeyInfo, now: number): 'active' | 'expired' | 'revoked' {
  if (revokedAt !== undefined && revokedAt <= now) return 'revoked'
  return expiresAt !== undefined && expiresAt <= now ? 'expired' : 'active'
}

export const walletSchema = z.object({
  balance: usd,
  held: usd.describe('Reserved by running requests.'),
  available: usd.describe('`balance` less `held`.'),
  currency: z.literal('USD'),
})

export function walletAnswer({ posted, held, available }: Wallet): z.input<typeof walletSchema> {
  return {
    balance: formatUsd(posted),
    held: formatUsd(held),
    available: formatUsd(available),
    currency: 'USD',
  }
}

export const topUpSchema = z.object({ id: z.string(), amount: usd, balance: usd.describe('After this top-up.') })

export const correctionSchema = z.object({
  id: z.string(),
  amount: usd,
  direction: z.enum(['add', 'take']),
  balance: usd.describe('After this correction.'),
})

export const transferSchema = z.object({
  id: z.string(),
  kind: z.enum(['charge', 'writeoff', 'topup', 'grant', 'correction']),
  direction: z.enum(['in', 'out']).describe('As seen from the wallet.'),
  amount: usd,
  request_id: z.string().nullable(),
  reference: z.string().nullable(),
  price_version: z.string().nullable(),
  usage: z.unknown().describe('Token counts the amount was computed from; null for funding.'),
  estimated: z.boolean().describe('The provider reported no usage, and it was estimated.'),
  created_at: time,
})

export function transferAnswer(transfer: Transfer, workspaceId: WorkspaceId): z.input<typeof transferSchema> {
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

export const credentialSchema = z.object({
  id: z.string(),
  provider: z.string(),
  last4: z.string().describe('All that is ever shown of the key; empty for a very short one.'),
  base_url: z.string().nullable().describe("null = the provider's own."),
  created_at: time,
  updated_at: time.describe('When the key was last replaced.'),
})

export function credentialAnswer(credential: CredentialSummary): z.input<typeof credentialSchema> {
  return {
    id: credential.id,
    provider: credential.provider,
    last4: credential.last4,
    base_url: credential.baseUrl ?? null,
    created_at: isoTime(credential.createdAt),
    updated_at: isoTime(credential.updatedAt),
  }
}

export const auditSchema = z.object({
  sequence: z.number(),
  at: time,
  actor: z.string(),
  action: z.string().describe('What kind of thing, and what was done to it: `key.revoke`.'),
  object: z.string().describe('The id of what was changed.'),
  details: z.record(z.string(), z.unknown()),
  request_id: z.string().nullable(),
  hash: z.string().describe('Over this entry and the hash of the one before.'),
})

export function auditAnswer(row: AuditRow): z.input<typeof auditSchema> {
  const { sequence, at, actor, action, object, details, requestId, hash } = row
  return { sequence, at: isoTime(at), actor, action, object, details, request_id: requestId ?? null, hash }
}

function timeOrNull(epochMs: number | undefined): string | null {
  return epochMs === undefined ? null : isoTime(epochMs)
}
