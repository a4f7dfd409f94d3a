// `tollgate config`: the settings in effect, and workspaces, projects and keys as a file declares them.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ItemOf } from '../../api/client.ts'
import { formatFault } from '../../config/fault.ts'
import { listSettings } from '../../config/shown-settings.ts'
import {
  type CommandContext,
  type CommandDefinition,
  type CommandInput,
  confirm,
  printJson,
  yesOption,
} from '../command.ts'
import { declarationOf, readDeclaration, readInstallation, renderDeclaration } from '../declaration/declaration.ts'
import { applyPlan, type Change, type CreatedKey, describeChange, type Plan, planChanges } from '../declaration/plan.ts'
import { type Columns, printTable } from '../operation-command.ts'
import { exitCodes, Refusal } from '../refusal.ts'
import { cleanText } from '../table.ts'

const file = { name: 'FILE' }
const prune = { help: 'also revoke keys that a file created and this one does not name' }

const showSettings: CommandDefinition = {
  words: ['config', 'show'],
  isDefault: true,
  isLocal: true,
  summary: 'prints each setting and where it came from',
  details: `As a gateway started here and now would read them; with --running, as the running gateway has them. Secrets are shown
as "set".`,
  options: { running: { help: 'ask the running gateway' } },
  examples: ['tollgate config', 'tollgate config show --running', 'tollgate config show --json'],
  async run(context, input) {
    if (input.isSet('running')) return await showRunning(context)
    const settings = listSettings(context.inputs)
    if ('faults' in settings) {
      const lines = settings.faults.map((fault) => `\n  ${formatFault(fault)}`).join('')
      return new Refusal(exitCodes.failed, `the configuration is wrong:${lines}`, 'tollgate doctor')
    }
    if (context.json) return printJson(context, { data: settings })
    printTable(context, settingColumns, settings)
    // A running gateway may have been started in another folder, with other variables.
    context.terminal.complain(
      'As a gateway started here and now would read them. For the running one: tollgate config show --running\n',
    )
    return undefined
  },
}

async function showRunning(context: CommandContext): Promise<Refusal | undefined> {
  const answer = await context.api.call('getConfig', {})
  if (answer instanceof Refusal) return answer
  if (context.json) return printJson(context, { data: answer.data })
  printTable(context, settingColumns, answer.data)
  return undefined
}

const settingColumns: Columns<ItemOf<'getConfig'>> = [
  ['SETTING', ({ name }) => name],
  ['VALUE', ({ value }) => value],
  ['FROM', ({ source }) => source],
]

const exportInstallation: CommandDefinition = {
  words: ['config', 'export'],
  summary: 'prints workspaces, projects, keys, allowlists and limits as YAML that apply takes',
  details: 'Keys are listed without secrets; revoked and expired ones are left out.',
  examples: ['tollgate config export > installation.yaml'],
  async run(context) {
    const installation = await readInstallation(context.api)
    if (installation instanceof Refusal) return installation
    const declaration = declarationOf(installation)
    if (context.json) return printJson(context, declaration)
    context.terminal.print(renderDeclaration(declaration))
    return undefined
  },
}

const plan: CommandDefinition = {
  words: ['config', 'plan'],
  summary: 'shows what apply would change, without changing anything',
  details: 'FILE is YAML as `tollgate config export` prints it; - reads the standard input.',
  positionals: [file],
  options: { prune },
  examples: ['tollgate config plan installation.yaml', 'tollgate config plan installation.yaml --json'],
  async run(context, input) {
    const planned = await makePlan(context, input)
    if (planned instanceof Refusal) return planned
    if (context.json) return printJson(context, { changes: planned.changes.map(jsonOf), left: planned.left })
    context.terminal.print(planText(planned))
    return undefined
  },
}

const apply: CommandDefinition = {
  words: ['config', 'apply'],
  summary: 'changes the installation to what the file declares',
  details: `The file is complete for what it names: without limits there are none, without models all are allowed. What it does not
name stays as it is. What apply creates is managed by the file and cannot be changed otherwise. A second run changes
nothing. Secrets of new keys are printed only once.`,
  positionals: [file],
  options: { prune, yes: yesOption },
  examples: ['tollgate config apply installation.yaml', 'tollgate config apply installation.yaml --prune --yes'],
  async run(context, input) {
    const planned = await makePlan(context, input)
    if (planned instanceof Refusal) return planned
    const { terminal, json } = context
    if (!json) terminal.complain(planText(planned))
    const declined = planned.changes.length > 0 ? await confirm(context, input, 'Make these changes?') : undefined
    if (declined) return declined
    const made: Change[] = []
    const keys: CreatedKey[] = []
    const refusal = await applyPlan(context.api, planned, (change, created) => {
      made.push(change)
      if (created) keys.push(created)
      if (created && !json) terminal.print(`${cleanText(created.place)}\t${created.secret}\n`)
    })
    if (json) printJson(context, { changes: made.map(jsonOf), left: planned.left, keys })
    else if (made.length > 0) terminal.complain(`${made.length} of ${planned.changes.length} made.\n`)
    return refusal
  },
}

async function makePlan(context: CommandContext, input: CommandInput): Promise<Plan | Refusal> {
  const name = input.positionals[0] ?? ''
  const text = await readText(context, name)
  if (text instanceof Refusal) return text
  const declaration = readDeclaration(name, text)
  if ('faults' in declaration) {
    const lines = declaration.faults.map((fault) => `\n  ${formatFault(fault)}`).join('')
    return new Refusal(exitCodes.usage, `the file is wrong:${lines}`, 'tollgate config export, for one that is right')
  }
  const installation = await readInstallation(context.api)
  if (installation instanceof Refusal) return installation
  const options = { prune: input.isSet('prune'), now: context.clock.now() }
  const planned = planChanges(declaration, installation, options)
  if (planned.faults.length === 0) return planned
  const lines = planned.faults.map((fault) => `\n  ${cleanText(fault)}`).join('')
  return new Refusal(exitCodes.failed, `nothing was changed, because this cannot be done:${lines}`)
}

async function readText({ inputs, terminal }: CommandContext, name: string): Promise<string | Refusal> {
  if (name === '-') return await terminal.readInput()
  try {
    return readFileSync(resolve(inputs.cwd, name), 'utf8')
  } catch {
    return new Refusal(exitCodes.notFound, `the file ${name} cannot be read.`, 'tollgate config export > FILE')
  }
}

function planText({ changes, left }: Plan): string {
  const lines = changes.map((change) => `${cleanText(describeChange(change))}\n`)
  const rest = left.map((each) => `  left as it is: ${cleanText(each)}\n`)
  const count = changes.length === 1 ? '1 change' : `${changes.length} changes`
  return `${lines.join('')}${rest.join('')}${changes.length === 0 ? 'Nothing to change.' : `${count}.`}\n`
}

function jsonOf(change: Change) {
  const { kind, what, place } = change
  return { action: kind, kind: what, place, summary: describeChange(change).slice(2) }
}

export const configCommands: readonly CommandDefinition[] = [showSettings, plan, apply, exportInstallation]
