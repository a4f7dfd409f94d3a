// `tollgate wallet`: what is there, putting money in, and the ledger of one workspace.

import { type CommandDefinition, printJson } from '../command.ts'
import { findWorkspace } from '../find-things.ts'
import { type JsonObject, shownAt, textAt } from '../json-members.ts'
import { workspaceTitle } from '../names.ts'
import { listLimitOption, readAmount, readListLimit } from '../read-values.ts'
import { Refusal } from '../refusal.ts'
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

export const walletCommands: readonly CommandDefinition[] = [showWallet, topUp, listTransfers]
