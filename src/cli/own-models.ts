// The catalog with the models that only a workspace's own provider keys open. They stand in no catalog, which everybody may
// read; what the keys of a project can call says so, and through whom.

import type { ApiClient } from './api-client.ts'
import { findProject, findWorkspace } from './find-things.ts'
import { type JsonObject, objectsOf, shownAt } from './json-members.ts'
import { exitCodes, Refusal } from './refusal.ts'

export interface ModelsWish {
  readonly project: string | undefined
  readonly workspace: string | undefined
}

export interface SeenModels {
  readonly models: readonly JsonObject[]
  /** Where own keys were not looked at: what to say about it. */
  readonly note?: string
}

/** Of a workspace where each project has its own list; more of them would be too many questions. */
const projectsMax = 20

/** With a project named, exactly what its keys can call; otherwise everything, with what the workspace has besides. */
export async function seenModels(
  api: ApiClient,
  catalog: readonly JsonObject[],
  wish: ModelsWish,
): Promise<SeenModels | Refusal> {
  const known = new Map(catalog.map((entry) => [shownAt(entry, 'id'), entry]))
  const entryOf = (model: JsonObject) => withOwn(known.get(shownAt(model, 'id')) ?? privateEntry(model), model)
  if (wish.project !== undefined) {
    const project = await findProject(api, wish.project, wish.workspace)
    const seen = project instanceof Refusal ? project : await modelsOf(api, [project])
    return seen instanceof Refusal ? seen : { models: seen.map(entryOf) }
  }
  const own = await ownModels(api, wish.workspace)
  if (!(own instanceof Refusal)) {
    const ids = new Set(own.map(({ id }) => id))
    return { models: [...catalog.filter(({ id }) => !ids.has(id)), ...own.map(entryOf)] }
  }
  if (wish.workspace !== undefined) return own
  // The catalog is for everybody, also for who has no token; nothing of it is missing.
  return own.exit === exitCodes.usage ? { models: catalog, note: severalWorkspaces } : { models: catalog }
}

const severalWorkspaces = 'There are several workspaces; --workspace ID also lists what its own provider keys open.\n'

/** By way of its projects; one question more for a workspace without keys of its own. */
async function ownModels(api: ApiClient, workspace: string | undefined): Promise<readonly JsonObject[] | Refusal> {
  const id = await findWorkspace(api, workspace)
  if (id instanceof Refusal) return id
  const path = `/api/workspaces/${encodeURIComponent(id)}`
  const credentials = await api.call({ path: `${path}/credentials` })
  if (credentials instanceof Refusal) return credentials
  if (objectsOf(credentials.data).length === 0) return []
  const projects = await api.list(`${path}/projects`, {}, projectsMax)
  if (projects instanceof Refusal) return projects
  // Where a project may call everything, it can call what any other can.
  const open = projects.data.find(({ models }) => models === null)
  const seen = await modelsOf(
    api,
    (open ? [open] : projects.data).map((project) => shownAt(project, 'id')),
  )
  return seen instanceof Refusal ? seen : seen.filter(({ own_key }) => own_key === true)
}

/** Each once. */
async function modelsOf(api: ApiClient, projectIds: readonly string[]): Promise<readonly JsonObject[] | Refusal> {
  const byId = new Map<string, JsonObject>()
  for (const id of projectIds) {
    const answer = await api.call({ path: `/api/projects/${encodeURIComponent(id)}/models` })
    if (answer instanceof Refusal) return answer
    for (const model of objectsOf(answer.data)) byId.set(shownAt(model, 'id'), model)
  }
  return [...byId.values()]
}

function withOwn(entry: JsonObject, { own_key, own_providers }: JsonObject): JsonObject {
  return own_key === true ? { ...entry, callable: true, own_key, own_providers } : entry
}

/** Of it only the name is known here; its price is that of whoever the workspace has its key from. */
function privateEntry({ id, owned_by }: JsonObject): JsonObject {
  return { id, name: id, owned_by, price: null, tags: [], source: 'own key', routes: [] }
}
