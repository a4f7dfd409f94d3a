// `tollgate route MODEL`: where a request would go right now, and why. Nothing is sent.

import { type CommandDefinition, printJson } from '../command.ts'
import { objectsOf, shownAt } from '../json-members.ts'
import { missingModel } from '../missing-model.ts'
import { exitCodes, Refusal, usageRefusal } from '../refusal.ts'
import { type Column, renderTable } from '../table.ts'

const columns: readonly Column[] = [
  { title: 'PLACE', align: 'right' },
  { title: 'PROVIDER' },
  { title: 'ITS NAME' },
  { title: 'LANE' },
  { title: 'WHY' },
]

export const routeCommand: CommandDefinition = {
  words: ['route'],
  summary: 'says where a request for a model would go now, and why; nothing is sent',
  positionals: [{ name: 'MODEL' }],
  options: { surface: { value: 'NAME', help: 'chat (the default) or messages: the dialect of the caller' } },
  examples: ['tollgate route sandbox/flaky', 'tollgate route anthropic/claude-opus-5.5 --surface messages'],
  async run(context, input) {
    const surface = input.text('surface') ?? 'chat'
    if (surface !== 'chat' && surface !== 'messages') {
      return usageRefusal('--surface is chat or messages.', 'tollgate route --help')
    }
    const model = input.positionals[0] ?? ''
    const plan = await context.api.call({ path: `/api/models/${encodeURIComponent(model)}/plan`, query: { surface } })
    const isMissing = plan instanceof Refusal && plan.exit === exitCodes.notFound
    if (isMissing) return await missingModel(context.api, model)
    if (plan instanceof Refusal) return plan
    if (context.json) return printJson(context, plan)
    const rows = objectsOf(plan.candidates).map((candidate) => [
      shownAt(candidate, 'place'),
      shownAt(candidate, 'provider'),
      shownAt(candidate, 'upstream_model'),
      shownAt(candidate, 'lane'),
      shownAt(candidate, 'why'),
    ])
    context.terminal.print(renderTable(columns, rows, context.terminal))
    return undefined
  },
}
