// `tollgate config`: the settings in force, and workspaces, projects and keys as a file declares them.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { formatFault } from '../../config/fault.ts'
import { listSettings } from '../../config/shown-settings.ts'
import { type CommandContext, type CommandDefinition, type CommandInput, printJson } from '../command.ts'
import { applyPlan, type CreatedKey } from '../declaration/apply.ts'
import { readDeclaration, renderDeclaration } from '../declaration/declaration.ts'
import { declarationOf, readInstallation } from '../declaration/installation.ts'
import { type Change, describeChange, type Plan, planChanges } from '../declaration/plan.ts'
import { objectsOf, shownAt } from '../json-members.ts'
import { exitCodes, Refusal } from '../refusal.ts'
import { cleanText, renderTable } from '../table.ts'

const file = { name: 'FILE' }
const prune = { help: 'also revokes keys that a file made and this one does not name' }

const showSettings: CommandDefinition = {
  words: ['config', 'show'],
  isDefault: true,
  isLocal: true,
  summary: 'prints each setting and where it came from',
  details: `As a gateway started here and now would read them; with --running as the one that runs has them in force. Secrets
are shown as "set".`,
  options: { running: { help: 'asks the gateway that runs' } },
  examples: ['tollgate config', 'tollgate config show --running', 'tollgate config show --json'],
  async run(context, input) {
    if (input.isSet('running')) return await showRunning(context)
    const settings = listSettings(context.inputs)
    if ('faults' in settings) {
      const lines = settings.faults.map((fault) => `\n  ${formatFault(fault)}`).join('')
      return new Refusal(exitCodes.failed, `the configuration is wrong:${lines}`, 'tollgate doctor')
    }
    if (context.json) return printJson(context, { data: settings })
    context.terminal.print(
      settingsTable(
        context,
        settings.map(({ name, value, source }) => [name, value, source]),
      ),
    )
    // A gateway that runs may have been started from another folder, with other variables.
    context.terminal.complain(
      'As a gateway started here and now would read them. Of one that runs: tollgate config show --running\n',
    )
    return undefined
  },
}

async function showRunning(context: CommandContext): Promise<Refusal | undefined> {
  const answer = await context.api.call({ path: '/api/config' })
  if (answer instanceof Refusal) return answer
  if (context.json) return printJson(context, { data: answer.data })
  const rows = objectsOf(answer.data).map((each) => ['name', 'value', 'source'].map((member) => shownAt(each, member)))
  context.terminal.print(settingsTable(context, rows))
  return undefined
}

function settingsTable({ terminal }: CommandContext, rows: readonly string[][]): string {
  const columns = ['SETTING', 'VALUE', 'FROM'].map((title) => ({ title }))
  return renderTable(columns, rows, terminal)
}

const exportInstallation: CommandDefinition = {
  words: ['config', 'export'],
  summary: 'prints workspaces, projects, keys, allowlists and limits as YAML that apply takes',
  details: 'Of keys only what they may do: no secret, and none that is revoked or expired.',
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
  summary: 'shows what apply would change, and changes nothing',
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
  summary: 'makes the installation as the file declares it',
  details: `The file says everything about what it names: without limits there are none, without models all are allowed. What it
does not name stays as it is. What apply makes is managed by the file: others are refused to change it. Run twice, it
changes nothing the second time. Secrets of new keys are printed this once.`,
  positionals: [file],
  options: { prune, yes: { help: 'does not ask' } },
  examples: ['tollgate config apply installation.yaml', 'tollgate config apply installation.yaml --prune --yes'],
  async run(context, input) {
    const planned = await makePlan(context, input)
    if (planned instanceof Refusal) return planned
    const { terminal, json } = context
    if (!json) terminal.complain(planText(planned))
    if (planned.changes.length > 0 && terminal.isInteractive && !input.isSet('yes')) {
      const answer = await terminal.ask('Make these changes? [y/N] ')
      if (!/^y(es)?$/i.test(answer.trim())) return new Refusal(exitCodes.failed, 'nothing was changed.', '--yes')
    }
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
