// `tollgate alerts` and `tollgate webhooks`. The secret of a webhook is printed alone on the standard output.

import type { ItemOf } from '../../api/client.ts'
import { alertKinds } from '../../kernel/alert.ts'
import type { CommandDefinition } from '../command.ts'
import { answerCommand, listCommand, listLimitOption, workspaceFilter } from '../operation-command.ts'
import { type Columns, cleanText, shownTime } from '../values.ts'

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

export const alertCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['alerts', 'list'],
    isDefault: true,
    summary: 'lists alerts, newest first',
    examples: ['tollgate alerts', 'tollgate alerts --workspace acme --json'],
    operation: 'listAlerts',
    options: { workspace, limit: listLimitOption },
    columns: [['TIME (UTC)', ({ created_at }) => shownTime(created_at)], 'kind', 'message'],
    whenEmpty: () => 'No alerts. To have them sent: tollgate webhooks create https://…\n',
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
      ['KINDS', ({ kinds }) => kinds?.join(' ') ?? 'all'],
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
