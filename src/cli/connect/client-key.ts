// The key that `connect` makes for a client, and which keys are still good after it: a key of its own can be revoked
// without touching anything else, if somebody says which one it is.

import { hostname } from 'node:os'
import type { CommandContext, CommandInput } from '../command.ts'
import { findProject } from '../find-things.ts'
import { type JsonObject, shownAt, textAt } from '../json-members.ts'
import { findNamesakes } from '../names.ts'
import { Refusal } from '../refusal.ts'
import { cleanText } from '../table.ts'
import type { Client } from './client.ts'

const allOfThem = 10_000

function keyName({ id }: Client): string {
  return `${id} on ${hostname()}`.slice(0, 60)
}

export async function clientKey(
  context: CommandContext,
  client: Client,
  input: CommandInput,
): Promise<string | Refusal> {
  const given = context.settings.apiKey
  if (given !== undefined) return given.reveal()
  const project = await findProject(context.api, input.text('project'), input.text('workspace'))
  if (project instanceof Refusal) return project
  const path = `/api/projects/${encodeURIComponent(project)}/keys`
  const key = await context.api.call({ method: 'POST', path, body: { name: keyName(client) } })
  if (key instanceof Refusal) return key
  context.terminal.complain(`Made key "${cleanText(shownAt(key, 'name'))}": ${shownAt(key, 'id')}\n`)
  const earlier = await findNamesakes(context.api, key, { path: '/api/keys', query: { project_id: project } })
  tellGoodKeys(context, earlier, 'Made earlier under this name and still good')
  return shownAt(key, 'secret')
}

/** Those that `connect` wrote or made for the client; undefined where the gateway cannot be asked. */
export async function findClientKeys(
  { api }: CommandContext,
  client: Client,
  settingsText: string,
): Promise<readonly JsonObject[] | undefined> {
  const list = await api.list('/api/keys', {}, allOfThem)
  if (list instanceof Refusal) return undefined
  const last4 = /sk-tg-[A-Za-z0-9]+/.exec(settingsText)?.[0].slice(-4)
  return list.data.filter((key) => {
    return textAt(key, 'status') === 'active' && (key.last4 === last4 || key.name === keyName(client))
  })
}

/** After `--undo`: what it made nobody needs any more; a key that it was given (TOLLGATE_KEY) serves others too. */
export function tellKeysLeft(context: CommandContext, client: Client, keys: readonly JsonObject[]): void {
  const isMade = (key: JsonObject) => key.name === keyName(client)
  tellGoodKeys(context, keys.filter(isMade), 'Still good')
  for (const key of keys.filter((each) => !isMade(each))) {
    const name = cleanText(shownAt(key, 'name'))
    context.terminal.complain(`The key "${name}" ${shownAt(key, 'id')} was given to it, and stays as it is.\n`)
  }
}

export function tellGoodKeys({ terminal }: CommandContext, keys: readonly JsonObject[], what: string): void {
  for (const key of keys) {
    const id = shownAt(key, 'id')
    terminal.complain(`${what}: "${cleanText(shownAt(key, 'name'))}" ${id}. To end it: tollgate keys revoke ${id}\n`)
  }
}
