// `tollgate workspaces`: who pays, each with one wallet.

import { type CommandContext, type CommandDefinition, printJson } from '../command.ts'
import { findWorkspace } from '../find-things.ts'
import { type JsonObject, shownAt, textAt } from '../json-members.ts'
import { findNamesakes, noteNamesakes } from '../names.ts'
import { Refusal } from '../refusal.ts'
import { shownLimits, shownTime, shownUsd } from '../shown-values.ts'
import { cleanText, renderFacts, renderTable } from '../table.ts'
import { workspaceDataCommands } from './workspace-data.ts'

const allOfThem = 10_000

export const workspaceCommands: readonly CommandDefinition[] = [
  {
    words: ['workspaces', 'list'],
    isDefault: true,
    summary: 'lists workspaces, oldest first',
    examples: ['tollgate workspaces', 'tollgate workspaces list --json'],
    async run(context) {
      const list = await context.api.list('/api/workspaces', {}, allOfThem)
      if (list instanceof Refusal) return list
      if (context.json) return printJson(context, list)
      const columns = [{ title: 'ID' }, { title: 'NAME' }, { title: 'LIMITS' }, { title: 'CREATED (UTC)' }]
      const rows = list.data.map((each) => [
        shownAt(each, 'id'),
        shownAt(each, 'name'),
        shownLimits(each.limits),
        shownTime(textAt(each, 'created_at')),
      ])
      context.terminal.print(renderTable(columns, rows, context.terminal))
      return undefined
    },
  },
  {
    words: ['workspaces', 'create'],
    summary: 'makes a workspace with an empty wallet',
    positionals: [{ name: 'NAME' }],
    options: { 'idempotency-key': { value: 'TEXT', help: 'makes a repeated call do nothing' } },
    examples: ['tollgate workspaces create acme'],
    async run(context, input) {
      const workspace = await context.api.call({
        method: 'POST',
        path: '/api/workspaces',
        body: { name: input.positionals[0] },
        idempotencyKey: input.text('idempotency-key'),
        typed: { name: 'NAME' },
      })
      if (workspace instanceof Refusal) return workspace
      noteNamesakes(context, 'workspace', await findNamesakes(context.api, workspace, { path: '/api/workspaces' }))
      if (context.json) return printJson(context, workspace)
      const id = shownAt(workspace, 'id')
      context.terminal.print(`Workspace "${cleanText(shownAt(workspace, 'name'))}" made: ${id}\n`)
      context.terminal.complain(`Next: tollgate wallet topup 10 --workspace ${id}\n`)
      return undefined
    },
  },
  {
    words: ['workspaces', 'show'],
    summary: 'shows a workspace and its wallet',
    positionals: [{ name: 'ID', isOptional: true }],
    examples: ['tollgate workspaces show', 'tollgate workspaces show ws_…'],
    async run(context, input) {
      const id = await findWorkspace(context.api, input.positionals[0])
      return id instanceof Refusal ? id : await showWorkspace(context, id)
    },
  },
  ...workspaceDataCommands,
]

async function showWorkspace(context: CommandContext, id: string): Promise<Refusal | undefined> {
  const path = `/api/workspaces/${encodeURIComponent(id)}`
  const workspace = await context.api.call({ path })
  if (workspace instanceof Refusal) return workspace
  const wallet = await context.api.call({ path: `${path}/wallet` })
  if (wallet instanceof Refusal) return wallet
  if (context.json) return printJson(context, { ...workspace, wallet })
  context.terminal.print(workspaceText(workspace, wallet))
  return undefined
}

function workspaceText(workspace: JsonObject, wallet: JsonObject): string {
  const facts = renderFacts([
    ['id', shownAt(workspace, 'id')],
    ['balance', shownUsd(textAt(wallet, 'balance'))],
    ['held', shownUsd(textAt(wallet, 'held'))],
    ['available', shownUsd(textAt(wallet, 'available'))],
    ['limits', shownLimits(workspace.limits)],
    ['created', `${shownTime(textAt(workspace, 'created_at'))} UTC`],
    ['managed by', shownAt(workspace, 'managed_by')],
  ])
  return `${cleanText(shownAt(workspace, 'name'))}\n${facts}`
}
