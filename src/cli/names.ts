// What things are called, for people. Names may be equal, ids never are: where two have one name, the id stands beside
// it, and whoever makes a second one is told.

import type { ApiClient } from './api-client.ts'
import type { CommandContext } from './command.ts'
import { type JsonObject, shownAt, textAt } from './json-members.ts'
import { Refusal } from './refusal.ts'
import { cleanText } from './table.ts'

const lookedAtMax = 10_000
const namesakesShownMax = 3
/** One call for each; a list over more workspaces than this shows ids. */
const workspacesMax = 20

/** The name of an id, with the id where it has none or shares it with another of these. */
export function namesOf(things: readonly JsonObject[]): (id: string) => string {
  const owners = Map.groupBy(things, (each) => shownAt(each, 'name'))
  const names = new Map(things.map((each) => [shownAt(each, 'id'), textAt(each, 'name')]))
  return (id) => {
    const name = names.get(id)
    if (name === undefined) return id
    return owners.get(name)?.length === 1 ? name : `${name} (${id})`
  }
}

/** Of the projects that these keys or requests are of; what cannot be read keeps its id. */
export async function projectNames(api: ApiClient, things: readonly JsonObject[]): Promise<ReturnType<typeof namesOf>> {
  const workspaces = [...new Set(things.flatMap((each) => textAt(each, 'workspace_id') ?? []))]
  if (workspaces.length > workspacesMax) return (id) => id
  const lists = await Promise.all(
    workspaces.map((id) => api.list(`/api/workspaces/${encodeURIComponent(id)}/projects`, {}, lookedAtMax)),
  )
  return namesOf(lists.flatMap((list) => (list instanceof Refusal ? [] : list.data)))
}

/** `acme (ws_…)`: the name to recognise it by, the id to type. */
export async function workspaceTitle(api: ApiClient, id: string): Promise<string> {
  const workspace = await api.call({ path: `/api/workspaces/${encodeURIComponent(id)}` })
  const name = workspace instanceof Refusal ? undefined : textAt(workspace, 'name')
  return name === undefined ? id : `${cleanText(name)} (${id})`
}

/** Others of the same name in a list; a key that has ended is in nobody's way. */
export async function findNamesakes(
  api: ApiClient,
  made: JsonObject,
  { path, query = {} }: { readonly path: string; readonly query?: Readonly<Record<string, string>> },
): Promise<readonly JsonObject[]> {
  const list = await api.list(path, query, lookedAtMax)
  if (list instanceof Refusal) return []
  return list.data.filter((each) => {
    return each.name === made.name && each.id !== made.id && (textAt(each, 'status') ?? 'active') === 'active'
  })
}

/** A note beside the answer: equal names are allowed, and easily overlooked. */
export function noteNamesakes(
  { terminal }: CommandContext,
  kind: 'workspace' | 'project' | 'key',
  namesakes: readonly JsonObject[],
): void {
  const [first] = namesakes
  if (first === undefined) return
  const shown = namesakes.slice(0, namesakesShownMax).map((each) => shownAt(each, 'id'))
  const more = namesakes.length > shown.length ? ` and ${namesakes.length - shown.length} more` : ''
  const name = cleanText(shownAt(first, 'name'))
  const what = namesakes.length === 1 ? `another ${kind} has` : `other ${kind}s have`
  terminal.complain(`Note: ${what} the name "${name}": ${shown.join(', ')}${more}\n`)
}
