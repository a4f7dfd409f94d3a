// `tollgate alerts`, `tollgate alert-rules` and `tollgate webhooks`. The secret of a webhook is printed alone on the standard output.

import type { ItemOf } from '../../api/client.ts'
import { alertKinds, ruleKinds } from '../../kernel/alert.ts'
import type { CommandDefinition } from '../command.ts'
import { answerCommand, listCommand, listLimitOption, workspaceFilter } from '../operation-command.ts'
import { usageRefusal } from '../refusal.ts'
import { type Columns, cleanText, readAmount, readCount, shownTime, shownUsd } from '../values.ts'

const workspace = workspaceFilter('only of this workspace; absent = of the installation and all workspaces')
const webhookId = { name: 'ID', prefix: 'whk_', parameter: 'id' } as const
const listing = 'tollgate webhooks'

const deliveryColumns: Columns<ItemOf<'listDeliveries'>> = [
  'id',
  'kind',
  'created_at',
  ['ATTEMPTS', ({ attempts }) => attempts, 'right'],
  'delivered_at',
  'next_at',
  'error',
]

const ruleId = { name: 'ID', prefix: 'rul_', parameter: 'id' } as const
const ruleListing = 'tollgate alert-rules'

const percentsOption = {
  value: 'LIST',
  help: 'percent of each spend limit, separated by commas: 80,100',
  field: 'percents',
  read: readPercents,
} as const

/** The gateway checks their range. */
function readPercents(text: string, label: string): readonly number[] {
  const parts = text.split(',').map((part) => part.trim().replace(/\s*%$/, ''))
  const wrong = parts.find((part) => !/^[0-9]{1,4}$/.test(part))
  if (wrong === undefined) return parts.map(Number)
  throw usageRefusal(`${label} takes whole percentages such as 80,100, not "${wrong}".`)
}

const thresholdOptions = {
  below: {
    value: 'USD',
    help: 'for balance.low: raise the alert below this balance',
    field: 'below',
    read: readAmount,
  },
  percents: percentsOption,
  days: {
    value: 'N',
    help: "for credit.expiring: how many days before a plan's credit expires unspent",
    field: 'days',
    read: readCount,
  },
  of: {
    value: 'ID',
    help: 'for limit.reached: only the limits of this key, project, workspace, person or group',
    field: 'scope_id',
  },
} as const

const recipientOptions = {
  roles: {
    value: 'LIST',
    isRepeatable: true,
    help: 'who gets an e-mail: admin, viewer; operator for the installation',
    field: 'roles',
  },
  emails: { value: 'LIST', isRepeatable: true, help: 'addresses that get an e-mail', field: 'emails' },
  webhooks: { value: 'LIST', isRepeatable: true, help: 'ids of webhooks that get it', field: 'webhooks' },
} as const

type Rule = ItemOf<'listAlertRules'>

function thresholdText({ below, percents, days, scope_id: scope }: Rule): string {
  if (below !== null) return `below ${shownUsd(below)}`
  if (days != null) return `${days} d before`
  if (percents === null) return '–'
  return `${percents.join(', ')} %${scope === null ? '' : ` of ${scope}`}`
}

function recipientsText({ roles, emails, webhooks }: Rule): string {
  return cleanText([...roles, ...emails, ...webhooks].join(' ')) || 'nobody'
}

function ruleText(rule: Rule, done: string): string {
  const isPlain = rule.below === null && rule.percents === null && rule.days == null
  const threshold = isPlain ? '' : `, ${thresholdText(rule)}`
  const place = rule.workspace_id ?? 'all workspaces'
  return `Rule ${rule.id} ${done}: ${rule.kind}${threshold}, for ${place}, to ${recipientsText(rule)}\n`
}

/** A rule whose e-mails cannot be sent looks like one that works. */
function noMailNote({ has_mail: hasMail, roles, emails }: Rule): string {
  if (hasMail || roles.length + emails.length === 0) return ''
  return 'No mail server is configured, so nobody gets e-mails. Set TOLLGATE_SMTP_URL and TOLLGATE_MAIL_FROM, or use a webhook.\n'
}

const ruleCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['alert-rules', 'list'],
    isDefault: true,
    summary: 'lists alert rules, oldest first',
    examples: ['tollgate alert-rules', 'tollgate alert-rules --workspace acme'],
    operation: 'listAlertRules',
    options: { workspace },
    columns: [
      'id',
      'kind',
      ['THRESHOLD', thresholdText],
      ['WORKSPACE', ({ workspace_id }) => workspace_id ?? 'all'],
      ['TO', recipientsText],
    ],
    whenEmpty: () => 'There are no alert rules. Next: tollgate alert-rules create --help\n',
  }),
  answerCommand({
    words: ['alert-rules', 'create'],
    summary: 'creates an alert rule: what is watched, from which threshold on, and who gets the alert',
    details: `Kinds: ${ruleKinds.join(', ')}. Without --workspace
the rule watches all workspaces. Without --roles, --emails and --webhooks the alert is only shown in the console, and sent to
the webhooks of its kind.`,
    examples: [
      'tollgate alert-rules create balance.low --below 20 --workspace acme --roles admin',
      'tollgate alert-rules create limit.reached --percents 80 --of key_… --workspace acme --emails ada@example.com',
    ],
    operation: 'createAlertRule',
    arguments: [{ name: 'KIND', field: 'kind' }],
    options: { workspace: workspaceFilter('the workspace it watches'), ...thresholdOptions, ...recipientOptions },
    text: (rule) => ruleText(rule, 'created'),
    note: noMailNote,
  }),
  answerCommand({
    words: ['alert-rules', 'update'],
    summary: 'changes the threshold or the recipients of an alert rule',
    examples: ['tollgate alert-rules update rul_… --below 50', 'tollgate alert-rules update rul_… --no-emails'],
    operation: 'updateAlertRule',
    arguments: [ruleId],
    options: {
      ...thresholdOptions,
      ...recipientOptions,
      'of-all': { help: 'the limits of all keys and projects', field: 'scope_id', set: null },
      'no-roles': { help: 'no roles', field: 'roles', set: [] },
      'no-emails': { help: 'no addresses', field: 'emails', set: [] },
      'no-webhooks': { help: 'no webhooks', field: 'webhooks', set: [] },
    },
    listedBy: ruleListing,
    text: (rule) => ruleText(rule, 'changed'),
    note: noMailNote,
  }),
  answerCommand({
    words: ['alert-rules', 'delete'],
    summary: 'deletes an alert rule',
    examples: ['tollgate alert-rules delete rul_… --yes'],
    operation: 'deleteAlertRule',
    arguments: [ruleId],
    confirm: ({ first }) => `Delete the alert rule ${cleanText(first)}?`,
    listedBy: ruleListing,
    text: (_answer, { first }) => `Alert rule ${cleanText(first)} deleted.\n`,
  }),
]

export const alertCommands: readonly CommandDefinition[] = [
  ...ruleCommands,
  listCommand({
    words: ['alerts', 'list'],
    isDefault: true,
    summary: 'lists alerts, newest first',
    examples: ['tollgate alerts', 'tollgate alerts --workspace acme --json'],
    operation: 'listAlerts',
    options: { workspace, limit: listLimitOption },
    columns: [['TIME (UTC)', ({ created_at }) => shownTime(created_at)], 'kind', 'message'],
    whenEmpty: () => 'No alerts. Who gets them: tollgate alert-rules\n',
  }),
  listCommand({
    words: ['alerts', 'deliveries'],
    summary: 'lists the last hundred deliveries to webhooks and by e-mail, newest first',
    examples: ['tollgate alerts deliveries'],
    operation: 'listRecentDeliveries',
    options: { workspace },
    columns: [...deliveryColumns.slice(0, 2), ['RECEIVER', ({ receiver }) => receiver], ...deliveryColumns.slice(2)],
  }),
  listCommand({
    words: ['webhooks', 'list'],
    isDefault: true,
    summary: 'lists webhooks, oldest first',
    examples: ['tollgate webhooks'],
    operation: 'listWebhooks',
    options: { workspace },
    columns: [
      'id',
      'url',
      ['WORKSPACE', ({ workspace_id }) => workspace_id ?? 'all'],
      ['KINDS', ({ kinds }) => (kinds === null ? 'all' : kinds.join(' ') || 'by rules only')],
      'format',
      'created_at',
    ],
    whenEmpty: () => 'There are no webhooks. Next: tollgate webhooks create https://…\n',
  }),
  answerCommand({
    words: ['webhooks', 'create'],
    summary: 'creates a webhook and prints the secret that signs its deliveries',
    details: `Kinds: ${alertKinds.join(', ')}. Without --workspace it gets the alerts of all
workspaces and of the installation. Deliveries are signed as https://www.standardwebhooks.com describes. Addresses that are
not public need webhooks.allow_hosts in the configuration file.`,
    examples: [
      'tollgate webhooks create https://example.com/hook',
      'tollgate webhooks create https://example.com/hook --workspace acme --kinds balance.low,limit.reached',
    ],
    operation: 'createWebhook',
    arguments: [{ name: 'URL', field: 'url' }],
    options: {
      workspace: workspaceFilter('only alerts of this workspace'),
      kinds: { value: 'LIST', isRepeatable: true, help: 'only these kinds, separated by commas', field: 'kinds' },
      'by-rules-only': { help: 'only what alert rules send it', field: 'kinds', set: [] },
      format: { value: 'FORMAT', help: 'standard, or slack for Slack and compatible services', field: 'format' },
    },
    text: ({ secret }) => `${secret}\n`,
    note: ({ id }) => `Webhook ${id} created; above is its secret. Next: tollgate webhooks test ${id}\n`,
  }),
  answerCommand({
    words: ['webhooks', 'delete'],
    summary: 'deletes a webhook and its deliveries',
    examples: ['tollgate webhooks delete whk_… --yes'],
    operation: 'deleteWebhook',
    arguments: [webhookId],
    confirm: ({ first }) => `Delete the webhook ${cleanText(first)}?`,
    listedBy: listing,
    text: (_answer, { first }) => `Webhook ${cleanText(first)} deleted.\n`,
  }),
  answerCommand({
    words: ['webhooks', 'test'],
    summary: 'sends a test to a webhook',
    examples: ['tollgate webhooks test whk_…'],
    operation: 'testWebhook',
    arguments: [webhookId],
    listedBy: listing,
    text: (_answer, { first }) => `A test is on its way. Result: tollgate webhooks deliveries ${cleanText(first)}\n`,
  }),
  listCommand({
    words: ['webhooks', 'deliveries'],
    summary: 'lists the last hundred deliveries of a webhook, newest first',
    examples: ['tollgate webhooks deliveries whk_…'],
    operation: 'listDeliveries',
    arguments: [webhookId],
    listedBy: listing,
    columns: deliveryColumns,
  }),
  answerCommand({
    words: ['webhooks', 'replay'],
    summary: 'sends the alert of a delivery once more',
    examples: ['tollgate webhooks replay dlv_…'],
    operation: 'replayDelivery',
    arguments: [{ name: 'DELIVERY', prefix: 'dlv_', parameter: 'id' }],
    text: ({ delivery_id }) => `Sent again as ${delivery_id}.\n`,
  }),
]
