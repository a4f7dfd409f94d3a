// `tollgate config`: the settings in effect, and workspaces, projects, keys and managed settings as a file declares them.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ItemOf } from '../../api/client.ts'
import { listSettings } from '../../config/config.ts'
import {
  type CommandContext,
  type CommandDefinition,
  confirm,
  faultLines,
  printResult,
  wrongConfig,
  yesOption,
} from '../command.ts'
import {
  applyPlan,
  type Change,
  type CreatedKey,
  declarationOf,
  describeChange,
  type Plan,
  planChanges,
  readDeclaration,
  readInstallation,
  renderDeclaration,
} from '../declaration.ts'
import { exitCodes, Refusal } from '../refusal.ts'
import { type Columns, cleanText, renderTable } from '../values.ts'

const file = { name: 'FILE' }
const prune = { help: 'also revoke keys and delete projects that a file created and this one does not name' }

const showSettings: CommandDefinition = {
  words: ['config', 'show'],
  isDefault: true,
  isLocal: true,
  summary: 'prints each setting and where it came from',
  details: `As a gateway started here and now would read them; with --running, as the running gateway has them. Secrets are shown
as "set".`,
  options: { running: { help: 'ask the running gateway' } },
  examples: ['tollgate config', 'tollgate config show --running', 'tollgate config show --json'],
  async run(context) {
    const isRunning = context.isSet('running')
    const settings = isRunning ? (await context.api.call('getConfig', {})).data : listSettings(context.inputs)
    if ('faults' in settings) throw wrongConfig(settings.faults)
    printResult(context, { data: settings }, () => renderTable(settingColumns, settings, context.terminal))
    // A running gateway may have been started in another folder, with other variables.
    if (isRunning || context.json) return
    context.terminal.complain(
      'As a gateway started here and now would read them. For the running one: tollgate config show --running\n',
    )
  },
}

const settingColumns: Columns<ItemOf<'getConfig'>> = [
  ['SETTING', ({ name }) => name],
  'value',
  ['FROM', ({ source }) => source],
]

const exportInstallation: CommandDefinition = {
  words: ['config', 'export'],
  summary: 'prints workspaces, projects, keys, allowlists, limits and managed settings as YAML that apply takes',
  details:
    'Keys are listed without secrets; revoked and expired ones are left out. Managed settings are printed as they are.',
  examples: ['tollgate config export > installation.yaml'],
  async run(context) {
    const declaration = declarationOf(await readInstallation(context.api))
    printResult(context, declaration, () => renderDeclaration(declaration))
  },
}

const plan: CommandDefinition = {
  words: ['config', 'plan'],
  summary: 'shows what apply would change, without changing anything',
  details: 'FILE is YAML as `tollgate config export` prints it; - reads the standard input.',
  positionals: [file],
  options: { prune },
  examples: ['tollgate config plan installation.yaml', 'tollgate config plan installation.yaml --json'],
  async run(context) {
    const planned = await makePlan(context)
    const { changes, left } = planned
    printResult(context, { changes: changes.map(jsonOf), left }, () => planText(planned))
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
  async run(context) {
    const planned = await makePlan(context)
    const { terminal, json } = context
    if (!json) terminal.complain(planText(planned))
    if (planned.changes.length > 0) await confirm(context, 'Make these changes?')
    const made: Change[] = []
    const keys: CreatedKey[] = []
    try {
      await applyPlan(context.api, planned, (change, created) => {
        made.push(change)
        if (created) keys.push(created)
        if (created && !json) terminal.print(`${cleanText(created.place)}\t${created.secret}\n`)
      })
    } finally {
      // Also after a failure, because secrets are shown only once.
      if (json) printResult(context, { changes: made.map(jsonOf), left: planned.left, keys }, () => '')
      else if (planned.changes.length > 0) terminal.complain(`${made.length} of ${planned.changes.length} made.\n`)
    }
  },
}

async function makePlan(context: CommandContext): Promise<Plan> {
  const { api, clock, first: name, isSet } = context
  const declaration = readDeclaration(name, await readText(context))
  if ('faults' in declaration) {
    const message = `the file is wrong:${faultLines(declaration.faults)}`
    throw new Refusal(exitCodes.usage, message, 'tollgate config export, for a correct example')
  }
  const options = { prune: isSet('prune'), now: clock.now() }
  const planned = planChanges(declaration, await readInstallation(api), options)
  if (planned.faults.length === 0) return planned
  const lines = planned.faults.map((fault) => `\n  ${cleanText(fault)}`).join('')
  throw new Refusal(exitCodes.failed, `nothing was changed, because this cannot be done:${lines}`)
}

async function readText({ inputs, terminal, first: name }: CommandContext): Promise<string> {
  if (name === '-') return await terminal.readInput()
  try {
    return readFileSync(resolve(inputs.cwd, name), 'utf8')
  } catch {
    throw new Refusal(exitCodes.notFound, `the file ${name} cannot be read.`, 'tollgate config export > FILE')
  }
}

function planText({ changes, left }: Plan): string {
  const lines = changes.map((change) => `${cleanText(describeChange(change))}\n`)
  const rest = left.map((each) => `  left as it is: ${cleanText(each)}\n`)
  const count = changes.length === 1 ? '1 change' : `${changes.length} changes`
  return `${lines.join('')}${rest.join('')}${changes.length === 0 ? 'Nothing to change.' : `${count}.`}\n`
}

function jsonOf(change: Change) {
  const { action, what, place } = change
  return { action, kind: what, place, summary: describeChange(change).slice(2) }
}

export const configCommands: readonly CommandDefinition[] = [showSettings, plan, apply, exportInstallation]
