// Alerts, and the webhooks that receive them.

import { z } from 'zod'
import { alertKinds, ruleKinds, webhookFormats } from '../kernel/alert.ts'
import { roles } from '../kernel/roles.ts'
import { amountField, idField, listSchema, must, pageFields, time, usd } from './fields.ts'
import type { Definitions } from './operation.ts'

export const alertSchema = z.object({
  id: z.string(),
  kind: z.enum(alertKinds),
  workspace_id: z.string().nullable().describe('null = of the installation.'),
  message: z.string(),
  data: z.record(z.string(), z.unknown()).describe('The facts, as webhooks send them.'),
  is_unread: z.boolean().describe('Newer than the last one that the caller marked as read.'),
  created_at: time,
})

export const webhookSchema = z.object({
  id: z.string(),
  workspace_id: z.string().nullable().describe('null = of the installation: it gets the alerts of all workspaces.'),
  url: z.string(),
  kinds: z.array(z.enum(alertKinds)).nullable().describe('null = all kinds.'),
  format: z.enum(webhookFormats),
  created_at: time,
})

export const deliverySchema = z.object({
  id: z.string().describe('The `webhook-id` header; the same for every attempt.'),
  alert_id: z.string(),
  kind: z.enum(alertKinds),
  receiver: z.string().describe('The URL of the webhook, or an e-mail address.'),
  attempts: z.int(),
  created_at: time,
  delivered_at: time.nullable(),
  next_at: time.nullable().describe('The next attempt; null = delivered or given up.'),
  error: z.string().nullable().describe('Why the last attempt failed.'),
})

export const alertRuleSchema = z.object({
  id: z.string(),
  workspace_id: z.string().nullable().describe('null = of the installation: it watches all workspaces.'),
  kind: z.enum(ruleKinds).describe('A rule for `provider.down` also sends `provider.up`.'),
  below: usd.nullable().describe('Of `balance.low`: the alert is raised below this balance.'),
  percents: z
    .array(z.int())
    .nullable()
    .describe('Of `limit.reached`: percent of each spend limit, ascending. Of `bill.differs`: percent of the bill.'),
  days: z
    .int()
    .nullish()
    .describe('For `credit.expiring`: how many days before the credit expires the alert is raised.'),
  scope_id: z
    .string()
    .nullable()
    .describe(
      'Of `limit.reached`: the key, project or workspace whose limits are watched, or the person or group whom they limit; null = all of them.',
    ),
  roles: z.array(z.enum(roles)).describe('Everyone with one of these roles gets an e-mail.'),
  emails: z.array(z.string()),
  webhooks: z.array(z.string()).describe('Their ids. A webhook also gets all alerts of its own `kinds`.'),
  has_mail: z.boolean().describe('Whether a mail server is configured; without one, nobody gets e-mails.'),
  created_at: time,
})

const percentExpected = must('a list of whole numbers from 1 to 100, such as [80, 100]')
const percentItem = must('a whole number from 1 to 100')
const daysExpected = must('a whole number of days from 1 to 366')
const recipientsMax = 20
const recipientsExpected = (what: string) => must(`a list of at most ${recipientsMax} ${what}`)
const recipientField = (what: string) =>
  z.array(z.string(recipientsExpected(what)), recipientsExpected(what)).max(recipientsMax, recipientsExpected(what))

const ruleFields = {
  below: amountField.nullish().describe('Required for `balance.low`: a balance above 0.'),
  percents: z
    .array(z.int(percentItem).min(1, percentItem).max(100, percentItem), percentExpected)
    .min(1, percentExpected)
    .max(10, must('a list of at most 10 percentages'))
    .nullish()
    .describe(
      'Required for `limit.reached` and `bill.differs`. Of those that are reached, the highest one raises the alert.',
    ),
  days: z
    .int(daysExpected)
    .min(1, daysExpected)
    .max(366, daysExpected)
    .nullish()
    .describe("Required for `credit.expiring`: how many days before a plan's credit expires unspent."),
  scope_id: z
    .string(must('the id of a key, project, workspace, person or group'))
    .nullish()
    .describe(
      'For `limit.reached`: only the limits of this key, project or workspace, or those of this person or group. null = all of them.',
    ),
  roles: z
    .array(z.enum(roles, must(`a list of ${roles.join(', ')}`)), must(`a list of ${roles.join(', ')}`))
    .optional()
    .describe('admin and viewer for a workspace, operator for the installation.'),
  emails: recipientField('e-mail addresses')
    .optional()
    .describe('For a workspace: of its members, or in `alerts.email_domains`. For the installation: any.'),
  webhooks: recipientField('ids of webhooks').optional().describe('Of the same workspace.'),
}

export const kindsExpected = must(`a list of ${alertKinds.join(', ')}`)

export const alertOperations = {
  listAlerts: {
    summary: 'Lists alerts, newest first: low balances, spend limits, providers that are down or back, changed prices.',
    query: z.strictObject({
      ...pageFields,
      workspace_id: idField('workspace').optional().describe('Only alerts of this workspace.'),
    }),
    answer: listSchema(alertSchema),
  },
  createAlertRule: {
    summary: 'Creates an alert rule: what is watched, from which threshold on, and who gets the alert.',
    body: z.strictObject({
      kind: z.enum(ruleKinds, must(`one of ${ruleKinds.join(', ')}`)),
      workspace_id: idField('workspace').nullish().describe('Absent or null = the whole installation.'),
      ...ruleFields,
    }),
    example: { kind: 'topup.failed', roles: [], emails: [] },
    answer: alertRuleSchema,
    status: 201,
  },
  listAlertRules: {
    summary: 'Lists alert rules, oldest first.',
    query: z.strictObject({
      ...pageFields,
      workspace_id: idField('workspace').optional().describe('Only those of this workspace.'),
      installation: z.literal('true', must('true')).optional().describe('`true`: only those of the installation.'),
    }),
    answer: listSchema(alertRuleSchema),
  },
  updateAlertRule: {
    summary: 'Changes the threshold or the recipients of an alert rule. Absent fields stay as they are.',
    body: z.strictObject(ruleFields),
    example: { emails: [] },
    answer: alertRuleSchema,
  },
  deleteAlertRule: {
    summary: 'Deletes an alert rule: what it watched raises no alert by it any more.',
    status: 204,
  },
  createWebhook: {
    summary:
      'Creates a webhook. Deliveries are signed by https://www.standardwebhooks.com with the secret in the answer.',
    body: z.strictObject({
      url: z
        .string(must('an address such as "https://example.com/hook"'))
        .describe('https, unless the operator allows the host.'),
      workspace_id: idField('workspace').nullish().describe('Absent or null = the alerts of the whole installation.'),
      kinds: z
        .array(z.enum(alertKinds, kindsExpected), kindsExpected)
        .nullish()
        .describe('Absent or null = all kinds. An empty list = only what alert rules send it.'),
      format: z
        .enum(webhookFormats, must('standard or slack'))
        .default('standard')
        .describe('`slack`: a body with `text`, as Slack and compatible services expect. Default `standard`.'),
    }),
    example: { url: 'https://example.com/hook', kinds: ['balance.low', 'limit.reached'] },
    answer: webhookSchema.extend({ secret: z.string().describe('`whsec_…`, for checking signatures.') }),
    status: 201,
  },
  listWebhooks: {
    summary: 'Lists webhooks, oldest first.',
    query: z.strictObject({ workspace_id: idField('workspace').optional().describe('Only those of this workspace.') }),
    answer: listSchema(webhookSchema),
  },
  deleteWebhook: {
    summary: 'Deletes a webhook and its deliveries.',
    status: 204,
  },
  testWebhook: {
    summary: 'Sends a test to the webhook; the list of its deliveries has the result.',
    answer: z.object({ delivery_id: z.string() }),
    status: 201,
  },
  listDeliveries: {
    summary: 'Lists the last hundred deliveries of a webhook, newest first.',
    answer: listSchema(deliverySchema),
  },
  listRecentDeliveries: {
    summary: 'Lists the last hundred deliveries to webhooks and by e-mail, newest first.',
    query: z.strictObject({
      workspace_id: idField('workspace').optional().describe('Only those to webhooks and members of this workspace.'),
    }),
    answer: listSchema(deliverySchema),
  },
  markAlertsRead: {
    summary: 'Marks alerts up to this one as read, for the caller alone.',
    body: z.strictObject({
      until: z.string(must('the id of an alert')).regex(/^alr_[0-9A-Z]{1,40}$/, must('the id of an alert (alr_…)')),
    }),
    example: { until: 'alr_01KA8M0Q2V7TSCXZ9Y5D3E1F4G' },
    status: 204,
  },
  replayDelivery: {
    summary: 'Sends the alert of a delivery once more.',
    answer: z.object({ delivery_id: z.string() }),
    status: 201,
  },
} satisfies Definitions
