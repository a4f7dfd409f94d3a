// `tollgate usage`: tokens and cost added up, as CSV or JSON lines for whoever writes the invoices.

import type { CommandDefinition } from '../command.ts'
import { findWorkspace } from '../find-things.ts'
import { readTime } from '../read-values.ts'
import { exitCodes, Refusal } from '../refusal.ts'

export const usageCommand: CommandDefinition = {
  words: ['usage', 'export'],
  isDefault: true,
  summary: 'prints tokens and cost, added up by day and model or as asked, as CSV',
  details: `One line for each combination; money is exact and in USD. Requests that retention has removed are not in it.
Groups: day, workspace, project, key, model, provider.`,
  options: {
    by: { value: 'GROUPS', help: 'added up by these, such as day,project,model; by default day,model' },
    from: { value: 'TIME', help: 'requests that began then or later; by default 30 days before the end' },
    to: { value: 'TIME', help: 'requests that began before; by default now' },
    workspace: { value: 'ID', help: 'only of this workspace' },
  },
  examples: ['tollgate usage', 'tollgate usage --by workspace,model --from 2026-11-01 --to 2026-12-01 > november.csv'],
  async run({ api, terminal, clock, json }, input) {
    const query = new URLSearchParams({ format: json ? 'jsonl' : 'csv' })
    const [groups, wanted] = [input.text('by'), input.text('workspace')]
    if (groups !== undefined) query.set('group_by', groups)
    const workspace = wanted === undefined ? undefined : await findWorkspace(api, wanted)
    if (workspace instanceof Refusal) return workspace
    if (workspace !== undefined) query.set('workspace_id', workspace)
    for (const name of ['from', 'to'] as const) {
      const text = input.text(name)
      const time = text === undefined ? undefined : readTime(text, `--${name}`, clock.now())
      if (time instanceof Refusal) return time
      if (time !== undefined) query.set(name, time)
    }
    const pieces = await api.download(`/api/usage/export?${query}`)
    if (pieces instanceof Refusal) return pieces
    const decoder = new TextDecoder()
    try {
      for await (const bytes of pieces) terminal.print(decoder.decode(bytes, { stream: true }))
    } catch {
      return new Refusal(exitCodes.failed, 'the gateway broke off; what was printed is not all of it.')
    }
    return undefined
  },
}
