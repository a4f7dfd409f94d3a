// `tollgate connect`: points a client on this machine at the gateway, and back. The client uses the person's sign-in, by a
// command for tokens or through the local proxy, or else a separate key that can be revoked alone. It says what it changes,
// keeps the original, and writes no key into a file that a repository would commit.

import { rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { AnswerOf } from '../../api/client.ts'
import { valueAt } from '../../config/document.ts'
import { nearestNames } from '../../kernel/nearest.ts'
import { type CommandContext, type CommandDefinition, printResult } from '../command.ts'
import {
  type Client,
  type ConnectFacts,
  type ConnectModel,
  clients,
  type FileClient,
  linesOf,
  type OwnFilesClient,
} from '../connect-clients.ts'
import { localKey, portOption, proxyUrl, readPort } from '../local-proxy.ts'
import { findProject, namesakesIn } from '../lookup.ts'
import { exitCodes, ifPossible, Refusal, usageRefusal } from '../refusal.ts'
import {
  backupOf,
  keepBackup,
  type Member,
  readSettings,
  readText,
  realFile,
  renderSettings,
  repositoryOf,
  restore,
  withMembers,
  writeText,
} from '../settings-file.ts'
import { hasPrivateAddress, isExposed, listModels } from '../sign-in.ts'
import type { SignIn } from '../stored-sign-ins.ts'
import { ownArguments } from '../supervise.ts'
import { cleanText } from '../values.ts'
import { namedGateway, signInsOf } from './sign-in.ts'

const shownKey = 'sk-tg-…'
const shownLocalKey = 'local-…'
const names = clients.map(({ id }) => id).join(', ')

export const connectCommand: CommandDefinition = {
  words: ['connect'],
  summary: `points a client at the gateway: ${names}`,
  details: `After tollgate login the client uses your sign-in: Claude Code, Codex and opencode run tollgate token, and the others
call tollgate proxy, which has to be running. Without a sign-in, or with --key, the client gets a key of its own: the one in
TOLLGATE_KEY, or a new one named after the client. The original file is kept beside it (….before-tollgate); --undo restores
it. Codex, Continue and aider get files of their own, which --undo deletes. For the others it prints what to enter.`,
  positionals: [{ name: 'CLIENT' }],
  options: {
    key: { help: 'use an API key, also when you are signed in' },
    'gateway-login': { help: 'for claude: sign in there with /login; the gateway needs a private address' },
    port: portOption,
    model: { value: 'ID', help: 'the model to use; absent = a suitable one is chosen' },
    project: { value: 'ID', help: 'where to create the key; optional if there is only one' },
    workspace: { value: 'ID', help: 'where to look for the project' },
    print: { help: 'only show what would be written' },
    'dry-run': { help: 'the same as --print' },
    undo: { help: 'restore the original settings' },
    restore: { help: 'the same as --undo' },
  },
  examples: ['tollgate connect claude --print', 'tollgate connect claude', 'tollgate connect claude --undo'],
  async run(context) {
    const { first: name, isSet } = context
    const client = clients.find(({ id }) => id === name)
    if (client === undefined) {
      const near = nearestId(name, clients)
      throw usageRefusal(`there is no client "${name}"; there are ${names}.`, `tollgate connect ${near ?? '--help'}`)
    }
    await (isSet('undo') || isSet('restore') ? undo(context, client) : connect(context, client))
  },
}

function nearestId(name: string, all: readonly { readonly id: string }[]): string | undefined {
  const ids = all.map(({ id }) => id)
  return nearestNames(name, ids, 1)[0]
}

async function connect(context: CommandContext, client: Client): Promise<void> {
  const { text, isSet } = context
  const isShown = isSet('print') || isSet('dry-run')
  const signIn = isSet('gateway-login') ? await findOwnLogin(context, client) : await findSignIn(context, client)
  const models = signIn ? await listModels(signIn) : await listCatalog(context)
  const model = text('model')
  if (model !== undefined && !models.some((each) => each.id === model)) {
    const near = nearestId(model, models)
    const attempt = near === undefined ? 'tollgate models' : `--model ${near}`
    throw new Refusal(exitCodes.notFound, `there is no model ${model}.`, attempt)
  }
  const shown = signIn ? signInFacts(context, client, signIn) : { url: context.api.url, key: shownKey }
  const facts: ConnectFacts = { ...shown, models, model, ...(isSet('gateway-login') && { ownLogin: true }) }
  if (client.kind === 'file') {
    const fault = fileFault(client.file(context.settings), facts)
    if (isShown || fault !== undefined) return show(context, client, facts, fault)
  }
  if (client.kind === 'own files' && isShown) return showFiles(context, client, facts)
  const isKeyless = isShown || facts.ownLogin
  const key = isKeyless
    ? facts.key
    : signIn
      ? localKey(context.settings.configFolder)
      : await clientKey(context, client)
  if (client.kind === 'file') write(context, client, { ...facts, key })
  else if (client.kind === 'own files') writeFiles(context, client, { ...facts, key })
  else {
    const steps = linesOf(client, { ...facts, key })
    printResult(context, { client: client.id, steps }, () => `${steps.join('\n')}\n`)
  }
  if (context.json) return
  if (facts.ownLogin) context.terminal.complain(`Then type /login in ${client.title}. No key was created.\n`)
  else if (signIn) context.terminal.complain(signInNote(context, client, signIn))
}

/** undefined = the client gets a key. Throws if there is neither a sign-in nor a way to a key. */
async function findSignIn(context: CommandContext, client: Client): Promise<SignIn | undefined> {
  const { settings, isSet } = context
  if (isSet('key')) return undefined
  const store = signInsOf(context)
  const url = namedGateway(context, '', store) ?? settings.url
  const canUseKey = settings.apiKey !== undefined || settings.token !== undefined
  if (store.find(url) === undefined && canUseKey) return undefined
  const signIn = await store.fresh(url)
  if (client.signIn !== undefined) return signIn
  const what = `${client.title} cannot use your sign-in, because it does not run on this machine. It needs an API key.`
  throw new Refusal(exitCodes.failed, what, `tollgate connect ${client.id} --key`)
}

/** For a client that signs in itself: the person's sign-in, if there is one, says which models there are. */
async function findOwnLogin(context: CommandContext, client: Client): Promise<SignIn | undefined> {
  const instead = `tollgate connect ${client.id}, without --gateway-login`
  if (client.signsIn !== true) throw usageRefusal(`${client.title} cannot sign in at a gateway itself.`, instead)
  const store = signInsOf(context)
  const url = namedGateway(context, '', store) ?? context.settings.url
  if (!isExposed(url) && (await hasPrivateAddress(url))) return store.find(url) && (await store.fresh(url))
  const what = `${client.title} signs in only at gateways with a private address, over https except on this machine; ${url} is not one.`
  throw new Refusal(exitCodes.failed, what, instead)
}

function signInFacts(context: CommandContext, { signIn: way }: Client, { gateway }: SignIn) {
  if (context.isSet('gateway-login')) return { url: gateway, key: '' }
  const tokenCommand = [ownProgram(), 'token', gateway] as const
  if (way === 'helper') return { url: gateway, key: '', tokenCommand }
  return { url: proxyUrl(readPort(context.text('port'))), key: shownLocalKey }
}

/** The program, for other programs: with its path, because theirs may differ from this shell's. */
function ownProgram(): string {
  return ownArguments().length === 0 ? process.execPath : join(import.meta.dir, '../../../bin/tollgate')
}

function signInNote({ text }: CommandContext, { title, signIn: way }: Client, { gateway, email }: SignIn): string {
  const who = `${title} uses your sign-in as ${cleanText(email)}; no key was created.\n`
  if (way === 'helper') return who
  const port = text('port') === undefined ? '' : ` --port ${text('port')}`
  return `${who}Keep this running while you use it: tollgate proxy ${gateway}${port}\n`
}

async function listCatalog({ api }: CommandContext): Promise<readonly ConnectModel[]> {
  const { data } = await api.call('getCatalog', { isPublic: true })
  return data.filter(({ price }) => price !== null)
}

/** A command is no secret. */
function holdsKey({ tokenCommand, ownLogin }: ConnectFacts): boolean {
  return tokenCommand === undefined && ownLogin === undefined
}

/** Why the file must not be written; undefined = it may. */
function fileFault(file: string, facts: ConnectFacts): string | undefined {
  const repository = holdsKey(facts) ? repositoryOf(file) : undefined
  if (repository !== undefined)
    return `${file} belongs to the repository ${repository}, and a key must not be committed`
  return readSettings(readText(file)) === undefined ? `${file} is not plain JSON (comments?)` : undefined
}

function show(context: CommandContext, client: FileClient, facts: ConnectFacts, fault: string | undefined): void {
  const members = client.members(facts)
  const file = client.file(context.settings)
  if (!context.json) context.terminal.complain(`${file} would get, in addition to what it contains:\n`)
  printResult(context, { client: client.id, file, members: jsonMembers(members) }, () =>
    renderSettings(withMembers({}, members)),
  )
  if (fault !== undefined)
    throw new Refusal(exitCodes.failed, `nothing was written: ${fault}.`, 'the settings above, by hand or as variables')
}

function write(context: CommandContext, client: FileClient, facts: ConnectFacts): void {
  const file = client.file(context.settings)
  const target = realFile(file)
  const members = client.members(facts)
  const settings = readSettings(readText(target)) ?? {}
  keepBackup(target)
  const changed = members.filter(({ path, value }) => !Bun.deepEquals(valueAt(settings, path), value))
  writeText(target, renderSettings(withMembers(settings, members)))
  writeTokenFile(context, client, facts)
  const masked = jsonMembers(client.members({ ...facts, key: shownKey }))
  printResult(context, { client: client.id, file: target, backup: backupOf(target), members: masked }, () => {
    const list = changed.map(({ path }) => `  ${path.join('.')}\n`).join('')
    return `${client.title} now uses ${facts.url}. Changed in ${target}:\n${list}${nextSteps(client, facts)}`
  })
}

/** Without a command for tokens, one that was written earlier goes. */
function writeTokenFile({ settings }: CommandContext, client: FileClient, facts: ConnectFacts): void {
  const file = client.tokenFile?.(facts, settings)
  if (file === undefined) return
  if (facts.tokenCommand) writeText(file.path, file.text)
  else rmSync(file.path, { force: true })
}

function showFiles(context: CommandContext, client: OwnFilesClient, facts: ConnectFacts): void {
  const files = client.files(facts, context.settings)
  printResult(context, { client: client.id, files }, () =>
    files.map(({ path, text }) => `${path}:\n\n${text}\n`).join(''),
  )
}

function writeFiles(context: CommandContext, client: OwnFilesClient, facts: ConnectFacts): void {
  const files = client.files(facts, context.settings)
  for (const { path } of files) {
    const repository = holdsKey(facts) ? repositoryOf(path) : undefined
    if (repository === undefined) continue
    const what = `nothing was written: ${path} belongs to the repository ${repository}, and a key must not be committed.`
    throw new Refusal(exitCodes.failed, what, `tollgate connect ${client.id} --print`)
  }
  for (const { path, text } of files) writeText(path, text)
  const paths = files.map(({ path }) => path)
  printResult(context, { client: client.id, files: paths }, () => {
    const written = paths.map((path) => `  ${path}\n`).join('')
    return `Written:\n${written}${nextSteps(client, facts)}`
  })
}

function nextSteps(client: Client, facts: ConnectFacts): string {
  return `${linesOf(client, facts).join('\n')}\nTo undo: tollgate connect ${client.id} --undo\n`
}

const noFacts: ConnectFacts = { url: '', key: '', models: [], model: undefined }

async function deleteFiles(context: CommandContext, client: OwnFilesClient): Promise<void> {
  const files = client.files(noFacts, context.settings)
  const paths = files.map(({ path }) => path).filter((path) => readText(path) !== undefined)
  if (paths.length === 0) throw new Refusal(exitCodes.notFound, `there is nothing to undo: no ${files[0]?.path}.`)
  const written = paths.map((path) => readText(path)).join('')
  for (const path of paths) rmSync(path)
  const keys = await findClientKeys(context, client, written)
  const ids = keys?.map(({ id }) => id) ?? null
  printResult(context, { client: client.id, files: paths, keys: ids }, () => `Deleted: ${paths.join(', ')}.\n`)
  sayKeysLeft(context, client, keys, written)
}

function jsonMembers(members: readonly Member[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(members.map(({ path, value }) => [path.join('.'), value]))
}

async function undo(context: CommandContext, client: Client): Promise<void> {
  if (client.kind === 'by hand') {
    throw new Refusal(exitCodes.failed, `${client.title} was set up manually and has to be reset manually.`)
  }
  if (client.kind === 'own files') return deleteFiles(context, client)
  const target = realFile(client.file(context.settings))
  // The members do not depend on the facts, except for one that is only written with --model.
  const members = client.members({ ...noFacts, models: [{ id: '-' }], model: '-' })
  const written = readText(target) ?? ''
  const outcome = restore(target, members)
  if (outcome !== 'not plain') writeTokenFile(context, client, noFacts)
  if (outcome === 'no backup') {
    throw new Refusal(exitCodes.notFound, `there is nothing to undo: no ${backupOf(target)}.`)
  }
  if (outcome === 'not plain') {
    const attempt = `cp ${backupOf(target)} ${target}`
    throw new Refusal(exitCodes.failed, `${target} is no longer plain JSON; it was left as it is.`, attempt)
  }
  const keys = await findClientKeys(context, client, written)
  const what = outcome === 'restored' ? 'is restored' : 'no longer has what connect wrote; later changes were kept'
  const ids = keys?.map(({ id }) => id) ?? null
  printResult(context, { client: client.id, file: target, outcome, keys: ids }, () => `${target} ${what}.\n`)
  sayKeysLeft(context, client, keys, written)
}

/** Active keys that `connect` wrote or created for the client; undefined if the gateway cannot be reached. */
async function findClientKeys({ api }: CommandContext, client: Client, written: string) {
  const last4 = /sk-tg-[A-Za-z0-9]+/.exec(written)?.[0].slice(-4)
  const isClients = (key: Key) => key.status === 'active' && (key.last4 === last4 || key.name === keyName(client))
  return (await ifPossible(api.list('listKeys', {})))?.data.filter(isClients)
}

/** `written`: what the client's files contained. */
function sayKeysLeft(context: CommandContext, client: Client, keys: readonly Key[] | undefined, written: string): void {
  if (context.json) return
  if (keys !== undefined) return listKeysLeft(context, client, keys)
  // Without a management token, `connect` has created none.
  if (context.settings.token === undefined && !written.includes('sk-tg-')) return
  context.terminal.complain('Its key is still active. To revoke it: tollgate keys list, then tollgate keys revoke ID\n')
}

type Key = AnswerOf<'getKey'>

function keyName({ id }: Client): string {
  return `${id} on ${hostname()}`.slice(0, 60)
}

async function clientKey(context: CommandContext, client: Client): Promise<string> {
  const { api, settings, terminal, text } = context
  if (settings.apiKey !== undefined) return settings.apiKey.reveal()
  const project = await findProject(api, text('project'), text('workspace'))
  const key = await api.call('createKey', { id: project, body: { name: keyName(client) } })
  terminal.complain(`Created key "${cleanText(key.name)}": ${key.id}\n`)
  const list = api.list('listKeys', { query: { project_id: project } })
  listActiveKeys(context, await namesakesIn(list, key), 'Created earlier with this name and still active')
  return key.secret
}

/**
 * After `--undo`: lists the active keys that `connect` created, which are no longer needed, and one from TOLLGATE_KEY,
 * which may be used elsewhere.
 */
function listKeysLeft(context: CommandContext, client: Client, keys: readonly Key[]): void {
  const { true: created = [], false: given = [] } = Object.groupBy(keys, ({ name }) => `${name === keyName(client)}`)
  listActiveKeys(context, created, 'Still active')
  for (const { id, name } of given) {
    context.terminal.complain(`The key "${cleanText(name)}" ${id} came from TOLLGATE_KEY and stays active.\n`)
  }
}

function listActiveKeys({ terminal }: CommandContext, keys: readonly Key[], what: string): void {
  for (const { id, name } of keys) {
    terminal.complain(`${what}: "${cleanText(name)}" ${id}. To revoke it: tollgate keys revoke ${id}\n`)
  }
}
