// Handlers of alerts and webhooks.

import { listAlerts, raiseTest } from '../../alerts/alerts.ts'
import { markRead, readUntil } from '../../alerts/readers.ts'
import { type AlertRule, createRule, deleteRule, listRules, updateRule } from '../../alerts/rules.ts'
import {
  createWebhook,
  deleteWebhook,
  findWebhook,
  listDeliveries,
  listRecentDeliveries,
  listWebhooks,
  replayDelivery,
  type Webhook,
} from '../../alerts/webhooks.ts'
import { alertRuleSchema, alertSchema, deliverySchema, webhookSchema } from '../../api/alerts.ts'
import { listAnswer } from '../../api/fields.ts'
import { invalidRequest } from '../../kernel/failure.ts'
import { EgressRefusal } from '../../providers/egress/egress-guard.ts'
import type { Sql } from '../../store/sql.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import { notFound } from '../../tenancy/management.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { answerAs, given, pageAnswer, pageOf } from './answers.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Handlers } from './route.ts'

export function alertHandlers(deps: RouteDependencies) {
  return { ...ruleHandlers(deps), ...webhookHandlers(deps) }
}

function ruleHandlers({ database, mailPolicy, sendMail }: RouteDependencies) {
  const ruleAnswer = (rule: AlertRule) => ruleFrom({ ...rule, hasMail: sendMail !== undefined })
  return {
    createAlertRule: {
      async write(sql, { body, act, reach }) {
        const {
          kind,
          workspace_id: id,
          below,
          percents,
          days,
          scope_id: scopeId,
          roles = [],
          emails = [],
          webhooks = [],
        } = body
        const workspaceId = reach.workspaceId ?? id ?? undefined
        if (workspaceId !== undefined) await getWorkspace(sql, workspaceId)
        const thresholds = {
          ...{ below: below ?? undefined, percents: percents ?? undefined, days: days ?? undefined },
          scopeId: scopeId ?? undefined,
        }
        const input = { workspaceId, kind, ...thresholds, roles, emails, webhooks }
        return ruleAnswer(await createRule(sql, input, mailPolicy(), act))
      },
    },
    async listAlertRules({ query, reach }) {
      const workspaceId = reach.workspaceId ?? query.workspace_id
      const filter = { workspaceId, isInstallation: query.installation === 'true' }
      return pageAnswer(await listRules(database.sql, pageOf(query), filter), ruleAnswer)
    },
    updateAlertRule: {
      async write(sql, { id, body: { below, percents, days, scope_id: scopeId, ...recipients }, act }) {
        const change = {
          ...given({ below, percents, days, ...recipients }),
          // null = all of them.
          ...(scopeId !== undefined && { scopeId: scopeId ?? undefined }),
        }
        return ruleAnswer(await updateRule(sql, id, { change, policy: mailPolicy(), act }))
      },
    },
    deleteAlertRule: {
      async write(sql, { id, act }) {
        await deleteRule(sql, id, act)
      },
    },
  } satisfies Partial<Handlers>
}

function webhookHandlers({ database, webhooks }: RouteDependencies) {
  return {
    async listAlerts({ query, reach }) {
      const workspaceId = reach.workspaceId ?? query.workspace_id
      const page = await listAlerts(database.sql, { ...pageOf(query), workspaceId })
      const read = await readUntil(database.sql, reach.principal.personId ?? 'installation')
      return pageAnswer(page, (alert) => alertAnswer({ ...alert, isUnread: alert.id > read }))
    },
    markAlertsRead: {
      async write(sql, { body: { until }, reach }) {
        await markRead(sql, reach.principal.personId ?? 'installation', until)
      },
    },
    async createWebhook({ body: { url, workspace_id: id, kinds, format }, act, reach }) {
      const workspaceId = reach.workspaceId ?? id ?? undefined
      if (workspaceId !== undefined) await getWorkspace(database.sql, workspaceId)
      // May take a moment, so it is not inside the transaction.
      const checked = await webhooks.guard().check(url)
      if (checked instanceof EgressRefusal) throw invalidRequest(`\`url\` ${checked.message}.`, 'url')
      const hook = await database.transaction(async (sql) => {
        const created = await createWebhook(sql, {
          workspaceId,
          url,
          kinds: kinds ?? undefined,
          format,
          createdAt: act.at,
        })
        const details = { workspace: workspaceId ?? null, host: new URL(url).host }
        await appendAudit(sql, { ...act, action: 'webhook.create', object: created.id, details })
        return created
      })
      return { ...webhookAnswer(hook), secret: webhooks.secretsOf(hook.id)[0] ?? '' }
    },
    async listWebhooks({ query, reach }) {
      const hooks = await listWebhooks(database.sql, reach.workspaceId ?? query.workspace_id)
      return listAnswer(hooks.map(webhookAnswer), undefined)
    },
    deleteWebhook: {
      async write(sql, { id, act }) {
        await getWebhook(sql, id)
        await deleteWebhook(sql, id)
        await appendAudit(sql, { ...act, action: 'webhook.delete', object: id })
      },
    },
    testWebhook: {
      async write(sql, { id, act }) {
        return { delivery_id: await raiseTest(sql, await getWebhook(sql, id), act.at) }
      },
    },
    async listDeliveries({ id }) {
      await getWebhook(database.sql, id)
      return listAnswer((await listDeliveries(database.sql, id)).map(deliveryAnswer), undefined)
    },
    async listRecentDeliveries({ query, reach }) {
      const deliveries = await listRecentDeliveries(database.sql, reach.workspaceId ?? query.workspace_id)
      return listAnswer(deliveries.map(deliveryAnswer), undefined)
    },
    replayDelivery: {
      async write(sql, { id, act }) {
        const delivery = await replayDelivery(sql, id, act.at)
        if (delivery === undefined) throw notFound('delivery', id)
        return { delivery_id: delivery }
      },
    },
  } satisfies Partial<Handlers>
}

async function getWebhook(sql: Sql, id: string): Promise<Webhook> {
  const hook = await findWebhook(sql, id)
  if (!hook) throw notFound('webhook', id)
  return hook
}

const alertAnswer = answerAs(alertSchema)
const deliveryAnswer = answerAs(deliverySchema)
const webhookAnswer = answerAs(webhookSchema)
const ruleFrom = answerAs(alertRuleSchema)
