// The models that a workspace's own provider keys open. They stand in no catalog, which everybody may read; what the keys of
// a project can call says so.

import type { SeenModel } from '../../../catalog/seen-entries.ts'
import { callApi, Refusal } from '../parts/call-api.ts'
import type { ListAnswer } from '../parts/use-resource.ts'
import { callForAll, together } from './call-all.ts'
import type { Credential, Project } from './things.ts'

export interface OwnModels {
  /** By id. */
  readonly models: readonly SeenModel[]
  /** False: no project may call every model, so there may be some that nobody can call. */
  readonly isWhole: boolean
}

/** Of a workspace where each project has its own list; more of them would be too many questions. */
const projectsMax = 20

export const noOwnModels: OwnModels = { models: [], isWhole: true }

/** One question in most workspaces: has it keys of its own? */
export async function readOwnModels(workspaceId: string): Promise<OwnModels | Refusal> {
  const credentials = await callApi<ListAnswer<Credential>>(`/api/workspaces/${workspaceId}/credentials`)
  if (credentials instanceof Refusal) return credentials
  if (credentials.data.length === 0) return noOwnModels
  const projects = await callForAll<Project>(`/api/workspaces/${workspaceId}/projects`)
  if (projects instanceof Refusal) return projects
  // Where a project may call everything, it can call what any other can.
  const open = projects.find(({ models }) => models === null)
  const asked = open ? [open] : projects.slice(0, projectsMax)
  const answers = await together<readonly { readonly data: readonly SeenModel[] }[]>(
    ...asked.map(({ id }) => callApi<{ readonly data: readonly SeenModel[] }>(`/api/projects/${id}/models`)),
  )
  if (answers instanceof Refusal) return answers
  const own = answers.flatMap(({ data }) => data).filter(({ own_key: isOwn }) => isOwn === true)
  const byId = new Map(own.map((model) => [model.id, model]))
  return { models: [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1)), isWhole: open !== undefined }
}
