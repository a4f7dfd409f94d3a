// Sends alerts to webhooks, signed as https://www.standardwebhooks.com describes, and to people by e-mail. A delivery is
// retried with growing waits for about a day. It may arrive more than once; its id stays the same. Workspaces choose the
// URLs, so the egress guard checks the address before every call.

import { createHmac } from 'node:crypto'
import type { AlertKind, WebhookFormat } from '../kernel/alert.ts'
import { type Clock, isoTime } from '../kernel/clock.ts'
import { createId, type PersonId, type WorkspaceId } from '../kernel/ids.ts'
import { createGuardedTransport, type EgressGuard, EgressRefusal } from '../providers/egress/egress-guard.ts'
import { count, type ItemIn, json, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { type Alert, alertRow, createDelivery } from './alerts.ts'
import { alertMail, alertSubject, type Mailer } from './mail.ts'
import { forgetWebhook } from './rules.ts'

const webhookRow = rowFormat({
  id: text(),
  /** undefined = it belongs to the installation and gets the alerts of all workspaces. */
  workspaceId: optional(text<WorkspaceId>()),
  url: text(),
  /** undefined = all kinds. */
  kinds: optional(json<readonly AlertKind[]>()),
  format: text<WebhookFormat>(),
  createdAt: time,
})

export type Webhook = ItemIn<typeof webhookRow>

const deliveryRow = rowFormat({
  id: text(),
  alertId: text(),
  kind: text<AlertKind>(),
  /** The webhook's URL, or an e-mail address. */
  receiver: text(),
  attempts: count,
  createdAt: time,
  /** undefined = not delivered. */
  deliveredAt: optional(time),
  /** The next attempt; undefined = it was delivered or given up. */
  nextAt: optional(time),
  /** Why the last attempt failed. */
  error: optional(text()),
})

export type Delivery = ItemIn<typeof deliveryRow>

export async function createWebhook(sql: Sql, hook: Omit<Webhook, 'id'>): Promise<Webhook> {
  const created = { id: createId('whk'), ...hook }
  await sql`INSERT INTO webhooks ${sql([webhookRow.write(created)])}`
  return created
}

export async function listWebhooks(sql: Sql, workspaceId?: WorkspaceId): Promise<readonly Webhook[]> {
  const rows = await (workspaceId === undefined
    ? sql`SELECT * FROM webhooks ORDER BY id`
    : sql`SELECT * FROM webhooks WHERE workspace_id = ${workspaceId} ORDER BY id`)
  return webhookRow.all(rows)
}

export async function findWebhook(sql: Sql, id: string): Promise<Webhook | undefined> {
  return webhookRow.first(await sql`SELECT * FROM webhooks WHERE id = ${id}`)
}

/** With its deliveries, and out of the rules that name it. */
export async function deleteWebhook(sql: Sql, id: string): Promise<void> {
  await forgetWebhook(sql, id)
  await sql`DELETE FROM deliveries WHERE webhook_id = ${id}`
  await sql`DELETE FROM webhooks WHERE id = ${id}`
}

const listedMax = 100

/** The newest hundred of a webhook, newest first. */
export async function listDeliveries(sql: Sql, webhookId: string): Promise<readonly Delivery[]> {
  const rows = await sql`SELECT d.*, a.kind, w.url AS receiver FROM deliveries d
      JOIN alerts a ON a.id = d.alert_id JOIN webhooks w ON w.id = d.webhook_id
    WHERE d.webhook_id = ${webhookId} ORDER BY d.id DESC LIMIT ${BigInt(listedMax)}`
  return deliveryRow.all(rows)
}

/** The newest hundred by webhook and e-mail. For a workspace: only those to its own webhooks, members and addresses. */
export async function listRecentDeliveries(sql: Sql, workspaceId: WorkspaceId | undefined) {
  const rows = await sql`SELECT d.*, a.kind, COALESCE(w.url, p.email, d.email) AS receiver FROM deliveries d
      JOIN alerts a ON a.id = d.alert_id LEFT JOIN webhooks w ON w.id = d.webhook_id
      LEFT JOIN people p ON p.id = d.person_id LEFT JOIN alert_rules r ON r.id = d.rule_id
    WHERE ${workspaceId ?? ''} = '' OR (a.workspace_id = ${workspaceId ?? ''} AND (w.workspace_id = ${workspaceId ?? ''}
      OR r.workspace_id = ${workspaceId ?? ''} OR EXISTS (SELECT 1 FROM members m WHERE m.person_id = d.person_id AND m.workspace_id = ${workspaceId ?? ''})))
    ORDER BY d.id DESC LIMIT ${BigInt(listedMax)}`
  return deliveryRow.all(rows)
}

interface Replayed {
  readonly alert_id: string
  readonly webhook_id: string | null
  readonly person_id: PersonId | null
  readonly email: string | null
  readonly rule_id: string | null
}

/** Sends the alert of a delivery once more, as a new delivery. undefined = there is none. */
export async function replayDelivery(sql: Sql, id: string, now: number): Promise<string | undefined> {
  const [row] = await sql<Replayed>`
    SELECT alert_id, webhook_id, person_id, email, rule_id FROM deliveries WHERE id = ${id}`
  if (!row) return undefined
  const { alert_id: alertId, webhook_id: webhookId, person_id: personId, email, rule_id: ruleId } = row
  return await createDelivery(sql, { alertId, webhookId, personId, email, ruleId, now })
}

// ── Signing ──

/**
 * The secrets of a webhook, `whsec_…`. They are derived from the master secret, so none is stored. While the master secret is
 * being replaced there are two, and both sign.
 */
export type WebhookSecrets = (webhookId: string) => readonly string[]

export function createWebhookSecrets(keys: readonly Uint8Array[]): WebhookSecrets {
  return (id) => keys.map((key) => `whsec_${createHmac('sha256', key).update(id).digest('base64')}`)
}

export function signedHeaders(id: string, seconds: number, body: string, secrets: readonly string[]) {
  const sign = (secret: string) => {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`
  }
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': secrets.map(sign).join(' '),
  }
}

/** Slack, Mattermost, Rocket.Chat and others show `text`; https://docs.slack.dev/messaging/formatting-message-text */
function slackBody(alert: Alert, address: string): string {
  const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  const text = `*${escaped(alertSubject(alert))}*\n${escaped(alert.message)}\n<${address}/console/alerts|Open the console>`
  return JSON.stringify({ text })
}

export function alertBody({ id, kind, workspaceId, message, data, createdAt }: Alert): string {
  const facts = { id, workspace_id: workspaceId ?? null, message, ...data }
  return JSON.stringify({ type: kind, timestamp: isoTime(createdAt), data: facts })
}

// ── Sending ──

const attemptMs = 10_000
/** If a replica dies while it sends, the others take over the delivery after this long. */
const leaseMs = 60_000
const batchMax = 20
const second = 1000
/** Waits after each failed attempt: about a day in all. */
const waitsMs = [5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800, 28_800].map((wait) => wait * second)
const errorMax = 200

export interface SenderDependencies {
  readonly database: Database
  readonly clock: Clock
  readonly secretsOf: WebhookSecrets
  /** From the current configuration. */
  guard(): EgressGuard
  /** The gateway's, for links. */
  address(): string
  /** undefined = no e-mail is configured. Such deliveries wait until `cleanAlerts` deletes them. */
  readonly mailer?: Mailer | undefined
}

interface DueRow {
  readonly attempts: bigint
  readonly alert_id: string
  readonly webhook_id: string | null
  readonly url: string | null
  readonly format: WebhookFormat | null
  readonly email: string | null
  readonly rule_id: string | null
}

/** Sends the deliveries that are due and returns how many it tried. Several replicas may do this at the same time. */
export async function sendDue(deps: SenderDependencies): Promise<number> {
  const { database, clock } = deps
  const now = clock.now()
  const mails = deps.mailer ? 1n : 0n
  const [due] = await database.sql`SELECT id FROM deliveries WHERE next_at <= ${timeToSql(now)}
    AND (webhook_id IS NOT NULL OR ${mails} = 1) LIMIT 1`
  if (!due) return 0
  const claimed = await database.transaction(async (sql) => {
    const rows = await sql<{
      id: string
    }>`UPDATE deliveries SET next_at = ${timeToSql(now + leaseMs)}, attempts = attempts + 1
      WHERE next_at <= ${timeToSql(now)} AND id IN (SELECT id FROM deliveries WHERE next_at <= ${timeToSql(now)}
        AND (webhook_id IS NOT NULL OR ${mails} = 1)
        ORDER BY next_at LIMIT ${BigInt(batchMax)}) RETURNING id`
    return rows.map(({ id }) => id)
  })
  await Promise.all(claimed.map((id) => deliver(deps, id)))
  return claimed.length
}

async function deliver(deps: SenderDependencies, id: string): Promise<void> {
  const { database, clock } = deps
  const [row] = await database.sql<DueRow>`SELECT d.attempts, d.alert_id, d.webhook_id, w.url, w.format,
      COALESCE(p.email, d.email) AS email, d.rule_id FROM deliveries d
      LEFT JOIN webhooks w ON w.id = d.webhook_id LEFT JOIN people p ON p.id = d.person_id WHERE d.id = ${id}`
  const alert = alertRow.first(await database.sql`SELECT * FROM alerts WHERE id = ${row?.alert_id ?? ''}`)
  // Deleted meanwhile.
  if (!row || !alert) return
  const fault = await send(deps, id, row, alert)
  const now = clock.now()
  const wait = waitsMs[Number(row.attempts) - 1]
  const nextAt = fault === undefined || wait === undefined || fault.isFinal ? null : timeToSql(now + wait)
  const deliveredAt = fault === undefined ? timeToSql(now) : null
  await database.transaction(
    (sql) => sql`UPDATE deliveries SET delivered_at = ${deliveredAt}, next_at = ${nextAt},
    error = ${fault?.message.slice(0, errorMax) ?? null} WHERE id = ${id}`,
  )
}

async function send(deps: SenderDependencies, id: string, row: DueRow, alert: Alert): Promise<PostFault | undefined> {
  const { clock, secretsOf, guard, mailer, address } = deps
  if (row.webhook_id === null) {
    const to = { email: row.email ?? '', isNamedByRule: row.rule_id !== null }
    return await mailer?.send(alertMail(alert, to, address()))
  }
  const body = row.format === 'slack' ? slackBody(alert, address()) : alertBody(alert)
  const headers = signedHeaders(id, Math.floor(clock.now() / second), body, secretsOf(row.webhook_id))
  return await post(guard(), row.url ?? '', headers, body)
}

interface PostFault {
  readonly message: string
  /** The receiver wants no more of them (410). */
  readonly isFinal?: boolean
}

/** undefined = the receiver accepted it. Redirects are not followed. */
async function post(
  guard: EgressGuard,
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<PostFault | undefined> {
  try {
    const transport = createGuardedTransport(guard, url)
    const bytes = new TextEncoder().encode(body)
    const response = await transport({ path: '', headers, body: bytes, signal: AbortSignal.timeout(attemptMs) })
    // The body is not needed; cancelling it closes the connection.
    await response.body?.cancel()
    const { status } = response
    if (status >= 200 && status < 300) return undefined
    return { message: `the receiver answered ${status}`, isFinal: status === 410 }
  } catch (error) {
    if (error instanceof EgressRefusal) return { message: `the URL ${error.message}` }
    return { message: error instanceof Error && error.name === 'TimeoutError' ? 'no answer in 10 s' : 'no connection' }
  }
}
