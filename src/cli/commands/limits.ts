// `tollgate limits`: what a workspace, a project or a key may use. The kind is in the id.

import { type CommandContext, type CommandDefinition, type CommandInput, printJson } from '../command.ts'
import { type JsonObject, objectOf } from '../json-members.ts'
import { limitOptions, limitsTyped, readLimits } from '../read-values.ts'
import { orListedBy, Refusal, usageRefusal } from '../refusal.ts'
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
      const found = await find(context, input)
      if (found instanceof Refusal) return found
      const { thing } = found
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
      const limits = readLimits(input)
      if (limits instanceof Refusal) return limits
      if ((Object.keys(limits).length === 0) !== input.isSet('none')) {
        return usageRefusal('give the limits, or --none for no limits at all.', 'tollgate limits put --help')
      }
      const found = await find(context, input)
      if (found instanceof Refusal) return found
      const { path, thing: before } = found
      const typed = limitsTyped('')
      const after = await context.api.call({ method: 'PUT', path: `${path}/limits`, body: limits, typed })
      if (after instanceof Refusal) return after
      if (context.json) return printJson(context, after)
      context.terminal.print(`was  ${shownLimits(before.limits)}\nnow  ${shownLimits(after)}\n`)
      return undefined
    },
  },
]

interface Found {
  readonly path: string
  readonly thing: JsonObject
}

async function find({ api }: CommandContext, input: CommandInput): Promise<Found | Refusal> {
  const id = input.positionals[0] ?? ''
  const kind = kinds[id.slice(0, id.indexOf('_'))]
  if (kind === undefined) {
    return usageRefusal(`"${id}" is not the id of a workspace (ws_…), a project (prj_…) or a key (key_…).`)
  }
  const path = `/api/${kind}/${encodeURIComponent(id)}`
  const thing = orListedBy(await api.call({ path }), `tollgate ${kind} list`)
  return thing instanceof Refusal ? thing : { path, thing }
}
