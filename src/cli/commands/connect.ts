// `tollgate connect`: points a client on this machine at the gateway with a key of its own, and back. It says what it
// changes, keeps the original, and writes no key into a file that a repository would commit.

import { nearestNames } from '../../kernel/nearest.ts'
import { type CommandContext, type CommandDefinition, type CommandInput, printJson } from '../command.ts'
import type { Client, ConnectFacts, Member } from '../connect/client.ts'
import { clientKey, findClientKeys, tellKeysLeft } from '../connect/client-key.ts'
import { clients } from '../connect/clients.ts'
import {
  backupOf,
  keepBackup,
  readSettings,
  readText,
  realFile,
  renderSettings,
  repositoryOf,
  restore,
  withMembers,
  writeText,
} from '../connect/settings-file.ts'
import { objectsOf, shownAt } from '../json-members.ts'
import { exitCodes, Refusal, usageRefusal } from '../refusal.ts'

const shownKey = 'sk-tg-…'
const names = clients.map(({ id }) => id).join(', ')

export const connectCommand: CommandDefinition = {
  words: ['connect'],
  summary: `points a client at the gateway: ${names}`,
  details: `Makes a key named after the client, unless TOLLGATE_KEY holds one. The original file is kept beside it
(….before-tollgate); --undo gives it back. Cline and Cursor have no such file: what to type is printed.`,
  positionals: [{ name: 'CLIENT' }],
  options: {
    model: { value: 'ID', help: 'the model to use; otherwise one that fits is chosen' },
    project: { value: 'ID', help: 'where to make the key; may be left out if there is only one' },
    workspace: { value: 'ID', help: 'where to look for the project' },
    print: { help: 'only shows what would be written' },
    'dry-run': { help: 'the same' },
    undo: { help: 'takes it back' },
    restore: { help: 'the same' },
  },
  examples: ['tollgate connect claude --print', 'tollgate connect claude', 'tollgate connect claude --undo'],
  async run(context, input) {
    const name = input.positionals[0] ?? ''
    const client = clients.find(({ id }) => id === name)
    if (client === undefined) {
      const near = nearestNames(
        name,
        clients.map(({ id }) => id),
        1,
      )[0]
      return usageRefusal(`there is no client "${name}"; there are ${names}.`, `tollgate connect ${near ?? '--help'}`)
    }
    if (client.kind === 'unsupported') return new Refusal(exitCodes.failed, client.reason, 'tollgate connect opencode')
    if (input.isSet('undo') || input.isSet('restore')) return await undo(context, client)
    return await connect(context, client, input)
  },
}

async function connect(
  context: CommandContext,
  client: Exclude<Client, { kind: 'unsupported' }>,
  input: CommandInput,
): Promise<Refusal | undefined> {
  const isShown = input.isSet('print') || input.isSet('dry-run')
  const catalog = await context.api.call({ path: '/api/catalog', isPublic: true })
  if (catalog instanceof Refusal) return catalog
  const models = objectsOf(catalog.data).filter(({ price }) => price !== null && price !== undefined)
  const model = input.text('model')
  if (model !== undefined && !models.some((each) => each.id === model)) return unknownModel(model, models)
  const facts = { url: context.api.url, key: shownKey, models, model }
  if (client.kind === 'file') {
    const fault = fileFault(client.file(context.settings))
    if (isShown || fault !== undefined) return show(context, client, facts, fault)
  }
  const key = isShown ? shownKey : await clientKey(context, client, input)
  if (key instanceof Refusal) return key
  if (client.kind === 'file') return write(context, client, { ...facts, key })
  const steps = client.steps({ ...facts, key })
  if (context.json) return printJson(context, { client: client.id, steps })
  context.terminal.print(`${steps.join('\n')}\n`)
  return undefined
}

function unknownModel(model: string, models: ConnectFacts['models']): Refusal {
  const near = nearestNames(
    model,
    models.map((each) => shownAt(each, 'id')),
    1,
  )[0]
  const attempt = near === undefined ? 'tollgate models' : `--model ${near}`
  return new Refusal(exitCodes.notFound, `there is no model ${model}.`, attempt)
}

type FileClient = Extract<Client, { kind: 'file' }>

/** Why the file must not be written; undefined = it may. */
function fileFault(file: string): string | undefined {
  const repository = repositoryOf(file)
  if (repository !== undefined)
    return `${file} belongs to the repository ${repository}, and a key must not be committed`
  return readSettings(readText(file)) === undefined ? `${file} is not plain JSON (comments?)` : undefined
}

function show(context: CommandContext, client: FileClient, facts: ConnectFacts, fault: string | undefined) {
  const members = client.members(facts)
  const file = client.file(context.settings)
  if (context.json) printJson(context, { client: client.id, file, members: jsonMembers(members) })
  else {
    context.terminal.complain(`${file} would get, beside what is there:\n`)
    context.terminal.print(renderSettings(withMembers({}, members)))
  }
  if (fault === undefined) return undefined
  return new Refusal(exitCodes.failed, `nothing was written: ${fault}.`, 'the settings above, by hand or as variables')
}

function write(context: CommandContext, client: FileClient, facts: ConnectFacts): undefined {
  const file = client.file(context.settings)
  const target = realFile(file)
  const members = client.members(facts)
  const settings = readSettings(readText(target)) ?? {}
  keepBackup(target)
  writeText(target, renderSettings(withMembers(settings, members)))
  if (context.json) {
    const masked = client.members({ ...facts, key: shownKey })
    return printJson(context, {
      client: client.id,
      file: target,
      backup: backupOf(target),
      members: jsonMembers(masked),
    })
  }
  const changed = members.map(({ path }) => `  ${path.join('.')}\n`).join('')
  const notes = client.notes(facts).map((note) => `${note}\n`)
  context.terminal.print(`${client.title} now uses ${facts.url}. Changed in ${target}:\n${changed}`)
  context.terminal.print(`${notes.join('')}To undo: tollgate connect ${client.id} --undo\n`)
}

function jsonMembers(members: readonly Member[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(members.map(({ path, value }) => [path.join('.'), value]))
}

async function undo(
  context: CommandContext,
  client: Exclude<Client, { kind: 'unsupported' }>,
): Promise<Refusal | undefined> {
  if (client.kind === 'by hand') {
    return new Refusal(exitCodes.failed, `${client.title} was set up by hand, and is set back by hand.`)
  }
  const target = realFile(client.file(context.settings))
  // Which members there are does not depend on the facts, except for ones that only some choices write.
  const members = client.members({ url: '', key: '', models: [{ id: '-' }], model: '-' })
  const written = readText(target) ?? ''
  const outcome = restore(target, members)
  if (outcome === 'no backup') {
    return new Refusal(exitCodes.notFound, `there is nothing to undo: no ${backupOf(target)}.`)
  }
  if (outcome === 'not plain') {
    const attempt = `cp ${backupOf(target)} ${target}`
    return new Refusal(exitCodes.failed, `${target} is no longer plain JSON; it was left as it is.`, attempt)
  }
  const keys = await findClientKeys(context, client, written)
  if (context.json) {
    const ids = keys?.map((key) => shownAt(key, 'id')) ?? null
    return printJson(context, { client: client.id, file: target, outcome, keys: ids })
  }
  const what = outcome === 'restored' ? 'is as it was' : 'has lost what connect wrote; later changes were kept'
  context.terminal.print(`${target} ${what}.\n`)
  if (keys !== undefined) tellKeysLeft(context, client, keys)
  else context.terminal.complain('Its key is still good. To end it: tollgate keys list, then tollgate keys revoke ID\n')
  return undefined
}
