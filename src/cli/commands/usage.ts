// `tollgate usage`: tokens and cost added up, as CSV or JSON lines for whoever writes the invoices.

import { isoTime } from '../../kernel/clock.ts'
import type { CommandDefinition } from '../command.ts'
import { findWorkspace } from '../find-things.ts'
import { readTime } from '../read-values.ts'
import { exitCodes, Refusal, usageRefusal } from '../refusal.ts'

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
    const now = isoTime(clock.now())
    const [from, to] = [query.get('from'), query.get('to')]
    // Both as the gateway's clock writes them, so that their order is that of the times.
    if (from !== null && from >= (to ?? now)) {
      const end = to === null ? `now, ${now}` : `--to, ${to}`
      return usageRefusal(`there is nothing between --from, ${from}, and ${end}: the beginning must be earlier.`)
    }
    const pieces = await api.download(`/api/usage/export?${query}`, { group_by: '--by' })
    if (pieces instanceof Refusal) return pieces
    const decoder = new TextDecoder()
    let lines = 0
    try {
      for await (const bytes of pieces) {
        const text = decoder.decode(bytes, { stream: true })
        lines += text.split('\n').length - 1
        terminal.print(text)
      }
    } catch {
      return new Refusal(exitCodes.failed, 'the gateway broke off; what was printed is not all of it.')
    }
    if (lines <= (json ? 0 : 1)) {
      terminal.complain('Nothing was used in that time, or retention has removed it. Other times: --from and --to\n')
    }
    return undefined
  },
}
