// `tollgate wallet` and `tollgate credentials`: the money of a workspace and its own provider keys. A provider key comes
// from a file, the standard input or a hidden prompt, never from an argument, which the shell's history would keep.

import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { AnswerOf, ItemOf } from '../../api/client.ts'
import type { CommandContext, CommandDefinition, CommandInput } from '../command.ts'
import { workspaceTitle } from '../lookup.ts'
import {
  answerCommand,
  downloadCommand,
  idempotencyOption,
  listCommand,
  listLimitOption,
  workspaceOption,
} from '../operation-command.ts'
import { usageRefusal } from '../refusal.ts'
import { cleanText, counted, readAmount, renderFacts, renderTable, shownTime, shownUsd } from '../values.ts'

const workspace = { ...workspaceOption, parameter: 'id' } as const
const workspaceArgument = {
  name: 'WORKSPACE',
  isOptional: true,
  prefix: 'ws_',
  parameter: 'id',
  find: 'workspace',
} as const

const walletCommands: readonly CommandDefinition[] = [
  answerCommand({
    words: ['wallet', 'show'],
    isDefault: true,
    summary: 'shows balance, held and available',
    examples: ['tollgate wallet', 'tollgate wallet show ws_… --json'],
    operation: 'getWallet',
    arguments: [workspaceArgument],
    options: { workspace },
    async text({ balance, held, available, credit }, { api }, { id = '' }) {
      const facts = renderFacts([
        ['balance', shownUsd(balance)],
        ...(Number(credit) === 0 ? [] : [['plan credit', `${shownUsd(credit)} of it, which expires`] as const]),
        ['held', `${shownUsd(held)} by running requests`],
        ['available', shownUsd(available)],
      ])
      return `${await workspaceTitle(api, id)}\n${facts}`
    },
  }),
  answerCommand({
    words: ['wallet', 'topup'],
    summary: 'adds money to the wallet, effective for the next request',
    examples: [
      'tollgate wallet topup 25',
      "tollgate wallet topup 25 --reference 'invoice 17' --idempotency-key inv-17",
    ],
    operation: 'topUp',
    arguments: [{ name: 'AMOUNT', field: 'amount', read: readAmount }],
    options: {
      workspace,
      reference: { value: 'TEXT', help: 'free text, such as an invoice number', field: 'reference' },
      'idempotency-key': idempotencyOption,
    },
    async text({ amount, balance, id }, { api }, parameters) {
      const title = await workspaceTitle(api, parameters.id ?? '')
      return `${shownUsd(amount)} added to ${title}; balance ${shownUsd(balance)}   ${id}\n`
    },
  }),
  answerCommand({
    words: ['wallet', 'correct'],
    summary: 'removes money that should not be in the wallet, or adds what is missing, with a reason',
    details: `Creates a new transfer. Money that running requests hold is never taken, and no wallet goes below zero: if less is
available, nothing is taken.`,
    examples: [
      "tollgate wallet correct --take 2475 --reason 'invoice 17 was 25.00'",
      "tollgate wallet correct ws_… --add 5 --reason 'goodwill' --idempotency-key ticket-9",
    ],
    operation: 'correctWallet',
    arguments: [workspaceArgument],
    options: {
      take: { value: 'USD', help: 'how much to remove', field: 'amount', read: readAmount },
      add: { value: 'USD', help: 'how much to add; one of the two', field: 'amount', read: readAmount },
      reason: { value: 'TEXT', help: 'shown in the ledger and the audit log; required', field: 'reason' },
      workspace,
      'idempotency-key': idempotencyOption,
    },
    check(input) {
      const [direction, { isSet, text }] = [directionOf(input), input]
      if (isSet('take') === isSet('add')) throw usageRefusal('say how much: either --take USD or --add USD.')
      readAmount(text(direction) ?? '', `--${direction}`)
      if (!isSet('reason')) throw usageRefusal('--reason is missing: it explains the correction later.')
    },
    body: (input) => ({ direction: directionOf(input) }),
    async text({ amount, balance, direction, id }, { api }, parameters) {
      const done = direction === 'take' ? 'taken from' : 'added to'
      const title = await workspaceTitle(api, parameters.id ?? '')
      return `${shownUsd(amount)} ${done} ${title}; balance ${shownUsd(balance)}   ${id}\n`
    },
  }),
  listCommand({
    words: ['wallet', 'transfers'],
    summary: 'lists payments in and out, newest first',
    examples: ['tollgate wallet transfers', 'tollgate wallet transfers --limit 500 --json'],
    operation: 'listTransfers',
    options: { workspace, limit: listLimitOption },
    columns: [
      ['TIME (UTC)', ({ created_at }) => shownTime(created_at)],
      [
        'KIND',
        ({ kind, direction, amount }) =>
          direction === 'none' ? `${kind} of ${shownUsd(amount)}, not from the wallet` : kind,
      ],
      ['AMOUNT', walletAmount, 'right'],
      ['REQUEST OR REFERENCE', ({ request_id, reference }) => request_id ?? reference],
      ['TRANSFER', ({ id }) => id],
    ],
  }),
]

const monthOption = {
  value: 'MONTH',
  help: 'a month in UTC: 2026-11; absent = the current one',
  field: 'month',
} as const

/** What the transfer added to the balance, so that the list adds up to it. */
function walletAmount({ direction, amount }: ItemOf<'listTransfers'>): string {
  if (direction === 'none') return shownUsd('0.00')
  return direction === 'out' ? outgoingUsd(amount) : `+${shownUsd(amount)}`
}

/** Zero has no sign: a call on the workspace's own provider key costs nothing. */
function outgoingUsd(amount: string): string {
  return `${Number(amount) === 0 ? '' : '-'}${shownUsd(amount)}`
}

const statementCommands: readonly CommandDefinition[] = [
  answerCommand({
    words: ['statements', 'show'],
    isDefault: true,
    summary: 'shows the statement of a month: balances, top-ups, and charges by model',
    examples: [
      'tollgate statements show --month 2026-11',
      'tollgate statements --month 2026-11 --workspace acme --json',
    ],
    operation: 'getStatement',
    options: { workspace, month: monthOption },
    text(statement, { terminal }) {
      const { workspace_name, month, is_final, fundings, charges } = statement
      const lines = [
        ['opening balance', '', shownUsd(statement.opening_balance)],
        ...fundings.map(({ kind, reference, amount }) => [kind, reference ?? '', shownUsd(amount)]),
        ...charges.map(({ model, requests, amount, plan_credit: credit }) => {
          const paid = Number(credit) === 0 ? '' : `, ${shownUsd(credit)} of it from plan credit`
          return [model, `${counted(requests, 'request')}${paid}`, outgoingUsd(amount)]
        }),
        [is_final ? 'closing balance' : 'balance', '', shownUsd(statement.closing_balance)],
      ]
      const columns = [
        ['ITEM', (line: string[]) => line[0]],
        ['NOTE', (line: string[]) => line[1]],
        ['AMOUNT', (line: string[]) => line[2], 'right'],
      ] as const
      return `${cleanText(workspace_name)}, ${month}\n${renderTable(columns, lines, terminal)}`
    },
  }),
  downloadCommand({
    words: ['statements', 'export'],
    summary: 'prints the statement of a month as CSV',
    examples: ['tollgate statements export --month 2026-11 > november.csv'],
    operation: 'exportStatement',
    options: { workspace, month: monthOption },
  }),
]

const requiredAmount = { value: 'USD', read: readAmount, isRequired: true } as const

const paymentCommands: readonly CommandDefinition[] = [
  answerCommand({
    words: ['wallet', 'pay'],
    summary: 'starts a card payment and prints the address of the payment page',
    examples: ['tollgate wallet pay 25', 'tollgate wallet pay 25 --save-card'],
    operation: 'createCheckout',
    arguments: [{ name: 'AMOUNT', field: 'amount', read: readAmount }],
    options: {
      workspace,
      'save-card': { help: 'keep the card at Stripe, for automatic top-ups', field: 'save_card', set: true },
      'idempotency-key': idempotencyOption,
    },
    text: ({ url }) => `${url}\n`,
    note: () => 'Pay there. Whether it has arrived: tollgate wallet payments\n',
  }),
  listCommand({
    words: ['wallet', 'payments'],
    summary: 'lists card payments and whether they have arrived, newest first',
    examples: ['tollgate wallet payments'],
    operation: 'listPayments',
    options: { workspace, limit: listLimitOption },
    columns: [
      ['TIME (UTC)', ({ created_at }) => shownTime(created_at)],
      'kind',
      ['AMOUNT', ({ amount }) => shownUsd(amount), 'right'],
      ['STATE', ({ state, failure }) => (failure === null ? state : `${state}: ${failure}`)],
      ['PAYMENT', ({ id }) => id],
    ],
  }),
  answerCommand({
    words: ['wallet', 'refund'],
    summary: 'refunds a card payment through Stripe and takes it from the wallet',
    details: `Takes only money that is available: a wallet never goes below zero. Without --amount, refunds what was not refunded
yet. If Stripe cannot be reached, the refund stays open and is tried again by itself.`,
    examples: ["tollgate wallet refund pay_… --amount 10 --reason 'ordered twice'"],
    operation: 'refundPayment',
    arguments: [{ name: 'PAYMENT', prefix: 'pay_', parameter: 'id' }],
    options: {
      amount: { value: 'USD', help: 'how much; absent = all', field: 'amount', read: readAmount },
      reason: { value: 'TEXT', help: 'shown in the ledger and the audit log; required', field: 'reason' },
      'idempotency-key': idempotencyOption,
    },
    check({ isSet }) {
      if (!isSet('reason')) throw usageRefusal('--reason is missing: it explains the refund later.')
    },
    text: ({ amount, state, failure, id }) =>
      `${shownUsd(amount)} ${{ open: 'not confirmed by Stripe yet', done: 'refunded', failed: `not refunded: ${failure}` }[state]}   ${id}\n`,
  }),
  answerCommand({
    words: ['auto-topup', 'show'],
    isDefault: true,
    summary: 'shows the saved card and the automatic top-up',
    examples: ['tollgate auto-topup'],
    operation: 'getPaymentSettings',
    options: { workspace },
    text: topUpText,
  }),
  answerCommand({
    words: ['auto-topup', 'on'],
    summary: 'tops the wallet up with the saved card when the balance is low',
    details: 'Needs a saved card: pay once with `tollgate wallet pay AMOUNT --save-card`.',
    examples: ['tollgate auto-topup on --below 5 --amount 25 --monthly-max 200'],
    operation: 'putAutoTopUp',
    options: {
      below: { ...requiredAmount, help: 'top up when the balance is below this', field: 'threshold' },
      amount: { ...requiredAmount, help: 'how much one top-up adds', field: 'amount' },
      'monthly-max': { ...requiredAmount, help: 'the most in one month (UTC)', field: 'monthly_max' },
      workspace,
    },
    text: topUpText,
  }),
  answerCommand({
    words: ['auto-topup', 'off'],
    summary: 'turns automatic top-up off',
    examples: ['tollgate auto-topup off'],
    operation: 'stopAutoTopUp',
    options: { workspace },
    text: () => 'Automatic top-up is off. A payment that has begun is still credited.\n',
  }),
]

function topUpText({ available, card, auto_topup: topUp }: AnswerOf<'getPaymentSettings'>): string {
  if (!available) return 'This gateway takes no payments: STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET are not set.\n'
  return renderFacts([
    ['automatic top-up', topUp.enabled ? 'on' : topUp.stopped === null ? 'off' : `off: ${topUp.stopped}`],
    ['below', shownUsd(topUp.threshold)],
    ['amount', shownUsd(topUp.amount)],
    ['this month', `${shownUsd(topUp.spent_this_month)} of ${shownUsd(topUp.monthly_max)}`],
    ['card', card ?? 'none; next: tollgate wallet pay 25 --save-card'],
  ])
}

function directionOf(input: CommandInput): 'take' | 'add' {
  return input.isSet('take') ? 'take' : 'add'
}

const provider = { name: 'PROVIDER', parameter: 'provider' } as const

const credentialCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['credentials', 'list'],
    isDefault: true,
    summary: "lists a workspace's own provider keys by their last four characters",
    examples: ['tollgate credentials'],
    operation: 'listCredentials',
    options: { workspace },
    columns: [
      ['PROVIDER', (credential) => credential.provider],
      ['KEY', ({ last4 }) => `…${last4}`],
      'base_url',
      ['STORED (UTC)', ({ updated_at }) => shownTime(updated_at)],
    ],
  }),
  answerCommand({
    words: ['credentials', 'put'],
    summary: "stores or replaces a workspace's own key for a provider",
    details: `The key is read from a file or the standard input, or asked for on a terminal. It can never be read back. For a host
that exchanges its credential for tokens (google-vertex) it is the JSON key file of a service account.`,
    examples: [
      'tollgate credentials put acme < acme.key',
      'tollgate credentials put google-vertex --file key.json',
      'tollgate credentials put acme',
    ],
    operation: 'putCredential',
    arguments: [provider],
    options: {
      workspace,
      file: { value: 'FILE', help: 'read the key from this file' },
      'base-url': { value: 'URL', help: "call this instead of the provider's own address", field: 'base_url' },
    },
    body: async (context) => ({ api_key: await readKey(context) }),
    text: (credential, _context, { id }) =>
      `Key …${credential.last4} for ${cleanText(credential.provider)} is stored in ${id}.\n`,
  }),
  answerCommand({
    words: ['credentials', 'delete'],
    summary: "deletes a workspace's own key for a provider",
    examples: ['tollgate credentials delete acme --yes'],
    operation: 'deleteCredential',
    arguments: [provider],
    options: { workspace },
    confirm: (_context, parameters) =>
      `Delete the key for ${cleanText(parameters.provider ?? '')} of ${parameters.id}?`,
    json: (_answer, parameters) => ({ deleted: parameters.provider }),
    text: (_answer, _context, parameters) =>
      `The key for ${cleanText(parameters.provider ?? '')} is deleted from ${parameters.id}.\n`,
  }),
]

async function readKey({ terminal, inputs, first, text }: CommandContext): Promise<string> {
  const [provider, file] = [cleanText(first), text('file')]
  const next = `tollgate credentials put ${provider} --file FILE`
  const read = async (): Promise<string> => {
    if (file === undefined) {
      return terminal.isInteractive ? terminal.askSecret(`Key for ${provider} (hidden): `) : terminal.readInput()
    }
    return await readFile(resolve(inputs.cwd, file), 'utf8').catch((error: { readonly code?: string }) => {
      throw usageRefusal(
        `${cleanText(file)} cannot be read${error.code === undefined ? '' : ` (${error.code})`}.`,
        next,
      )
    })
  }
  const key = (await read()).trim()
  if (key === '') throw usageRefusal('no key was given.', next)
  // A prompt takes one line, and this is the first line of a pasted key file.
  if (key === '{') throw usageRefusal('a key of several lines cannot be typed in.', next)
  return key
}

export const moneyCommands: readonly CommandDefinition[] = [
  ...walletCommands,
  ...statementCommands,
  ...paymentCommands,
  ...credentialCommands,
]
