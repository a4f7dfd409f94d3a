// Alerts, and the webhooks that receive them.

import { z } from 'zod'
import { alertKinds } from '../kernel/alert.ts'
import { idField, listSchema, must, pageFields, time } from './fields.ts'
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
        .describe('Absent or null = all kinds.'),
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
