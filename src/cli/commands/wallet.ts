// `tollgate wallet`: what is there, putting money in, correcting it, and the ledger of one workspace.

import { type CommandDefinition, type CommandInput, printJson } from '../command.ts'
import { findWorkspace } from '../find-things.ts'
import { type JsonObject, shownAt, textAt } from '../json-members.ts'
import { workspaceTitle } from '../names.ts'
import { listLimitOption, readAmount, readListLimit } from '../read-values.ts'
import { Refusal, usageRefusal } from '../refusal.ts'
import { shownTime, shownUsd } from '../shown-values.ts'
import { renderFacts, renderTable } from '../table.ts'

const workspace = { value: 'ID', help: 'which workspace; may be left out if there is only one' }

const showWallet: CommandDefinition = {
  words: ['wallet', 'show'],
  isDefault: true,
  summary: 'shows balance, held and available',
  positionals: [{ name: 'WORKSPACE', isOptional: true, prefix: 'ws_' }],
  options: { workspace },
  examples: ['tollgate wallet', 'tollgate wallet show ws_… --json'],
  async run(context, input) {
    const id = await findWorkspace(context.api, input.positionals[0] ?? input.text('workspace'))
    if (id instanceof Refusal) return id
    const wallet = await context.api.call({ path: `/api/workspaces/${encodeURIComponent(id)}/wallet` })
    if (wallet instanceof Refusal) return wallet
    if (context.json) return printJson(context, wallet)
    const facts = renderFacts([
      ['balance', shownUsd(textAt(wallet, 'balance'))],
      ['held', `${shownUsd(textAt(wallet, 'held'))} by running requests`],
      ['available', shownUsd(textAt(wallet, 'available'))],
    ])
    context.terminal.print(`${await workspaceTitle(context.api, id)}\n${facts}`)
    return undefined
  },
}

const topUp: CommandDefinition = {
  words: ['wallet', 'topup'],
  summary: 'puts money into the wallet, effective for the next request',
  positionals: [{ name: 'AMOUNT' }],
  options: {
    workspace,
    reference: { value: 'TEXT', help: 'for people, such as an invoice' },
    'idempotency-key': { value: 'TEXT', help: 'makes a repeated call put nothing in twice' },
  },
  examples: ['tollgate wallet topup 25', "tollgate wallet topup 25 --reference 'invoice 17' --idempotency-key inv-17"],
  async run(context, input) {
    const amount = readAmount(input.positionals[0] ?? '', 'AMOUNT')
    if (amount instanceof Refusal) return amount
    const id = await findWorkspace(context.api, input.text('workspace'))
    if (id instanceof Refusal) return id
    const reference = input.text('reference')
    const done = await context.api.call({
      method: 'POST',
      path: `/api/workspaces/${encodeURIComponent(id)}/topups`,
      body: { amount, ...(reference === undefined ? {} : { reference }) },
      idempotencyKey: input.text('idempotency-key'),
      typed: { amount: 'AMOUNT', reference: '--reference' },
    })
    if (done instanceof Refusal) return done
    if (context.json) return printJson(context, done)
    const [put, balance] = [shownUsd(textAt(done, 'amount')), shownUsd(textAt(done, 'balance'))]
    const title = await workspaceTitle(context.api, id)
    context.terminal.print(`${put} put into ${title}; balance ${balance}   ${shownAt(done, 'id')}\n`)
    return undefined
  },
}

const correct: CommandDefinition = {
  words: ['wallet', 'correct'],
  summary: 'takes out what should not be in the wallet, or adds what is missing; a new transfer with a reason',
  details:
    'Nothing is taken that running requests hold, and no wallet goes below zero: where less is free, nothing is taken.',
  positionals: [{ name: 'WORKSPACE', isOptional: true, prefix: 'ws_' }],
  options: {
    take: { value: 'USD', help: 'how much leaves the wallet' },
    add: { value: 'USD', help: 'how much comes in; one of the two' },
    reason: { value: 'TEXT', help: 'why, for people: it stands in the ledger and in the audit log' },
    workspace,
    'idempotency-key': { value: 'TEXT', help: 'makes a repeated call correct nothing twice' },
  },
  examples: [
    "tollgate wallet correct --take 2475 --reason 'invoice 17 was 25.00'",
    "tollgate wallet correct ws_… --add 5 --reason 'goodwill' --idempotency-key ticket-9",
  ],
  async run(context, input) {
    const { direction, option, text } = chosenDirection(input)
    if (direction === undefined) return usageRefusal('Say how much: either --take USD or --add USD.')
    const amount = readAmount(text, option)
    if (amount instanceof Refusal) return amount
    const reason = input.text('reason')
    if (reason === undefined) return usageRefusal('--reason is missing: say why, for those who read the ledger later.')
    const id = await findWorkspace(context.api, input.positionals[0] ?? input.text('workspace'))
    if (id instanceof Refusal) return id
    const done = await context.api.call({
      method: 'POST',
      path: `/api/workspaces/${encodeURIComponent(id)}/corrections`,
      body: { amount, direction, reason },
      idempotencyKey: input.text('idempotency-key'),
      typed: { amount: option, reason: '--reason' },
    })
    if (done instanceof Refusal) return done
    if (context.json) return printJson(context, done)
    const [moved, balance] = [shownUsd(textAt(done, 'amount')), shownUsd(textAt(done, 'balance'))]
    const words = direction === 'take' ? 'taken from' : 'added to'
    const title = await workspaceTitle(context.api, id)
    context.terminal.print(`${moved} ${words} ${title}; balance ${balance}   ${shownAt(done, 'id')}\n`)
    return undefined
  },
}

const directions = ['take', 'add'] as const

/** `direction` is undefined unless exactly one of them was given. */
function chosenDirection(input: CommandInput) {
  const given = directions.filter((name) => input.text(name) !== undefined)
  const direction = given.length === 1 ? given[0] : undefined
  return { direction, option: `--${direction}`, text: (direction && input.text(direction)) ?? '' }
}

const listTransfers: CommandDefinition = {
  words: ['wallet', 'transfers'],
  summary: 'lists what came in and what was paid, newest first',
  options: { workspace, limit: listLimitOption },
  examples: ['tollgate wallet transfers', 'tollgate wallet transfers --limit 500 --json'],
  async run(context, input) {
    const limit = readListLimit(input)
    if (limit instanceof Refusal) return limit
    const id = await findWorkspace(context.api, input.text('workspace'))
    if (id instanceof Refusal) return id
    const list = await context.api.list(`/api/workspaces/${encodeURIComponent(id)}/transfers`, {}, limit)
    if (list instanceof Refusal) return list
    if (context.json) return printJson(context, list)
    const columns = [
      { title: 'TIME (UTC)' },
      { title: 'KIND' },
      { title: 'AMOUNT', align: 'right' } as const,
      { title: 'REQUEST OR REFERENCE' },
      { title: 'TRANSFER' },
    ]
    const rows = list.data.map((transfer) => [
      shownTime(textAt(transfer, 'created_at')),
      shownAt(transfer, 'kind'),
      signedAmount(transfer),
      textAt(transfer, 'request_id') ?? shownAt(transfer, 'reference'),
      shownAt(transfer, 'id'),
    ])
    context.terminal.print(renderTable(columns, rows, context.terminal))
    return undefined
  },
}

function signedAmount(transfer: JsonObject): string {
  return `${textAt(transfer, 'direction') === 'out' ? '-' : '+'}${shownUsd(textAt(transfer, 'amount'))}`
}

export const walletCommands: readonly CommandDefinition[] = [showWallet, topUp, correct, listTransfers]
