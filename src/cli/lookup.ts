// Resolves the objects that arguments name, and the names of ids. A workspace, project or key may be given by name if only one
// has it. A workspace or project may be omitted if there is only one, or one called `default`. Names need not be unique: where two are equal, the id is shown too.

import { builtInModels } from '../catalog/data/built-in.ts'
import { neededVariables } from '../providers/registry.ts'
import { allowsModel, createAllowlist } from '../tenancy/allowlist.ts'
import type { ApiClient } from './api-client.ts'
import type { CommandContext } from './command.ts'
import { exitCodes, ifPossible, Refusal, usageRefusal } from './refusal.ts'
import { cleanText } from './values.ts'

interface Named {
  readonly id: string
  readonly name: string
}

const choicesMax = 10
/** The first start creates a workspace and a project of this name; it is meant when none is given. */
const usualName = 'default'

export async function findWorkspace(api: ApiClient, wanted: string | undefined): Promise<string> {
  if (wanted?.startsWith('ws_')) return wanted
  const { data } = await api.list('listWorkspaces', {})
  return choose(data, wanted, 'workspace', '')
}

/** In the named workspace, or in the only one. */
export async function findProject(
  api: ApiClient,
  wanted: string | undefined,
  workspace: string | undefined,
): Promise<string> {
  if (wanted?.startsWith('prj_')) return wanted
  const id = await findWorkspace(api, workspace)
  const { data } = await api.list('listProjects', { id })
  return choose(data, wanted, 'project', workspace === undefined ? '' : ` --workspace ${workspace}`)
}

/** In the named workspace, or in the only one. */
export async function findGroup(api: ApiClient, wanted: string, workspace: string | undefined): Promise<string> {
  if (wanted.startsWith('grp_')) return wanted
  const { data } = await api.list('listGroups', { id: await findWorkspace(api, workspace) }, Number.POSITIVE_INFINITY)
  return onlyOne(data, wanted, 'group', 'tollgate groups list')
}

/** By its name only a key that works, since a new key often has the name of the one it replaces. */
export async function findKey(api: ApiClient, wanted: string): Promise<string> {
  if (wanted.startsWith('key_')) return wanted
  const { data } = await api.list('listKeys', {})
  const working = data.filter(({ status }) => status === 'active')
  return onlyOne(working, wanted, 'active key', 'tollgate keys list')
}

function onlyOne(all: readonly Named[], wanted: string, what: string, listing: string): string {
  const named = all.filter(({ name }) => name === wanted)
  const [first] = named
  if (first === undefined) throw new Refusal(exitCodes.notFound, `there is no ${what} "${cleanText(wanted)}".`, listing)
  if (named.length === 1) return first.id
  throw usageRefusal(`there are several of this name; give the id:${shownChoices(named)}`, listing)
}

/** The id of a workspace, a project or a key that is given by id or by name. */
export async function findHolder(api: ApiClient, wanted: string): Promise<string> {
  if (/^(ws|prj|key)_/.test(wanted)) return wanted
  const [keys, workspaces] = await Promise.all([api.list('listKeys', {}), api.list('listWorkspaces', {})])
  const projects = await Promise.all(workspaces.data.map(({ id }) => api.list('listProjects', { id })))
  const working = keys.data.filter(({ status }) => status === 'active')
  const all = [...workspaces.data, ...projects.flatMap(({ data }) => data), ...working]
  return onlyOne(all, wanted, 'workspace, project or active key', 'tollgate keys list')
}

/** `within`: the option that names the workspace, for commands to try. */
function choose(
  all: readonly Named[],
  wanted: string | undefined,
  kind: 'workspace' | 'project',
  within: string,
): string {
  const named = all.filter(({ name }) => name === (wanted ?? usualName))
  const matching = wanted !== undefined || named.length === 1 ? named : all
  const [first] = matching
  if (first === undefined) {
    const attempt = `tollgate ${kind}s ${all.length === 0 ? 'create NAME' : 'list'}${within}`
    const what = wanted === undefined ? `there is no ${kind} yet.` : `there is no ${kind} "${wanted}".`
    throw new Refusal(exitCodes.notFound, what, attempt)
  }
  if (matching.length === 1) return first.id
  throw usageRefusal(`there are several; say which ${kind}:${shownChoices(matching)}`, `--${kind} ${first.id}`)
}

function shownChoices(all: readonly Named[]): string {
  const shown = all.slice(0, choicesMax).map(({ id, name }) => `\n  ${id}  ${cleanText(name)}`)
  return shown.join('') + (all.length > choicesMax ? `\n  … and ${all.length - choicesMax} more` : '')
}

/** The name of an id, followed by the id if others have the same name; the id itself if it is unknown. */
export function namesOf(all: readonly Named[]): (id: string) => string {
  const byName = Map.groupBy(all, ({ name }) => name)
  const names = new Map(all.map(({ id, name }) => [id, name]))
  return (id) => {
    const name = names.get(id)
    if (name === undefined) return id
    return byName.get(name)?.length === 1 ? name : `${name} (${id})`
  }
}

/** One call per workspace; a list over more workspaces shows ids. */
const workspacesMax = 20

/** Names of the projects that these keys or requests belong to. */
export async function projectNames(
  api: ApiClient,
  members: readonly { readonly workspace_id: string }[],
): Promise<(id: string) => string> {
  const workspaces = [...new Set(members.map((member) => member.workspace_id))]
  if (workspaces.length > workspacesMax) return (id) => id
  const lists = await Promise.all(
    workspaces.map((id) => ifPossible(api.list('listProjects', { id, query: { archived: 'true' } }))),
  )
  return namesOf(lists.flatMap((list) => list?.data ?? []))
}

/** `acme (ws_…)`: the name to recognise it by, the id to type. */
export async function workspaceTitle(api: ApiClient, id: string): Promise<string> {
  const workspace = await ifPossible(api.call('getWorkspace', { id }))
  return workspace ? `${cleanText(workspace.name)} (${id})` : id
}

const namesakesShownMax = 3

/** Equal names are allowed and easily overlooked, so a new object with a name already in use gets a note. */
export function noteNamesakes({ terminal }: CommandContext, kind: string, namesakes: readonly Named[]): void {
  const [first] = namesakes
  if (first === undefined) return
  const shown = namesakes.slice(0, namesakesShownMax).map(({ id }) => id)
  const more = namesakes.length > shown.length ? ` and ${namesakes.length - shown.length} more` : ''
  const what = namesakes.length === 1 ? `another ${kind} has` : `other ${kind}s have`
  terminal.complain(`Note: ${what} the name "${cleanText(first.name)}": ${shown.join(', ')}${more}\n`)
}

/** The others of this name in a list; keys that are revoked or expired do not count. */
export async function namesakesIn<Item extends Named & { readonly status?: string }>(
  listing: Promise<{ readonly data: readonly Item[] }>,
  made: Named,
): Promise<readonly Item[]> {
  const { data } = (await ifPossible(listing)) ?? { data: [] }
  return data.filter(({ id, name, status = 'active' }) => name === made.name && id !== made.id && status === 'active')
}

/** An allowlist that matches no model is allowed, since a provider may be enabled later, but it is often a mistake. */
export async function warnIfNoModels(
  { api, terminal }: CommandContext,
  what: 'project' | 'key',
  projectId: string,
  models: readonly string[] | null,
): Promise<void> {
  // The project or key was created; a failure of this check must not look like a failure of the command.
  const offered = await ifPossible(api.call('listProjectModels', { id: projectId }))
  if (!offered) return
  const own = models === null ? [] : [createAllowlist(models)]
  if (offered.data.some(({ id }) => allowsModel(own, id))) return
  terminal.complain(
    `Warning: this ${what} cannot call any available model. Available models: tollgate models; what other providers need: tollgate providers\n`,
  )
}

/** A built-in model may only need a provider, and then the variable that enables it is known. */
export async function missingModel(api: ApiClient, id: string): Promise<Refusal> {
  const unknown = new Refusal(exitCodes.notFound, `there is no model ${id}.`, 'tollgate models')
  const routes = builtInModels.find((each) => each.id === id)?.routes ?? []
  const enabled = await ifPossible(api.call('listProviders', {}))
  if (!enabled || routes.some(({ provider }) => enabled.data.some((each) => each.id === provider))) return unknown
  const disabled = [...new Set(routes.map(({ provider }) => provider))].flatMap((provider) => {
    const variables = neededVariables(provider)
    return variables === undefined ? [] : [{ provider, variables }]
  })
  const [first] = disabled
  if (first === undefined) return unknown
  const wanted = disabled.map(({ provider, variables }) => `${variables.join(' and ')} (${provider})`).join(', or ')
  const what = `${id} is built in, but none of its providers is enabled. Start the gateway with ${wanted}.`
  return new Refusal(exitCodes.notFound, what, `${first.variables.map((name) => `${name}=…`).join(' ')} tollgate serve`)
}
