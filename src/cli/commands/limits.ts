// `tollgate limits`: what a workspace, a project or a key may use. The kind is in the id.

import { type CommandDefinition, type CommandInput, printJson } from '../command.ts'
import { objectOf } from '../json-members.ts'
import { limitOptions, readLimits } from '../read-values.ts'
import { Refusal, usageRefusal } from '../refusal.ts'
import { shownLimits } from '../shown-values.ts'

const kinds: Readonly<Record<string, string>> = { ws: 'workspaces', prj: 'projects', key: 'keys' }
const target = { name: 'ID' }

export const limitCommands: readonly CommandDefinition[] = [
  {
    words: ['limits', 'show'],
    summary: 'shows the limits of a workspace, a project or a key',
    positionals: [target],
    examples: ['tollgate limits show key_…'],
    async run(context, input) {
      const path = pathOf(input)
      if (path instanceof Refusal) return path
      const thing = await context.api.call({ path })
      if (thing instanceof Refusal) return thing
      if (context.json) return printJson(context, objectOf(thing.limits))
      context.terminal.print(`${shownLimits(thing.limits)}\n`)
      return undefined
    },
  },
  {
    words: ['limits', 'put'],
    summary: 'replaces all limits of a workspace, a project or a key, from the next request on',
    details: 'What is not given becomes unlimited. The tightest of key, project and workspace holds.',
    positionals: [target],
    options: { ...limitOptions, none: { help: 'no limits at all' } },
    examples: ['tollgate limits put key_… --rpm 60 --spend-per-day 5', 'tollgate limits put ws_… --none'],
    async run(context, input) {
      const path = pathOf(input)
      if (path instanceof Refusal) return path
      const limits = readLimits(input)
      if (limits instanceof Refusal) return limits
      if ((Object.keys(limits).length === 0) !== input.isSet('none')) {
        return usageRefusal('give the limits, or --none for no limits at all.', 'tollgate limits put --help')
      }
      const before = await context.api.call({ path })
      if (before instanceof Refusal) return before
      const after = await context.api.call({ method: 'PUT', path: `${path}/limits`, body: limits })
      if (after instanceof Refusal) return after
      if (context.json) return printJson(context, after)
      context.terminal.print(`was  ${shownLimits(before.limits)}\nnow  ${shownLimits(after)}\n`)
      return undefined
    },
  },
]

function pathOf(input: CommandInput): string | Refusal {
  const id = input.positionals[0] ?? ''
  const kind = kinds[id.slice(0, id.indexOf('_'))]
  if (kind === undefined) {
    return usageRefusal(`"${id}" is not the id of a workspace (ws_…), a project (prj_…) or a key (key_…).`)
  }
  return `/api/${kind}/${encodeURIComponent(id)}`
}
