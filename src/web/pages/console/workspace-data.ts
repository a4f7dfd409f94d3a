// Data about a workspace that several pages need: the models its own provider keys unlock, and its objects as the YAML that
// `tollgate config apply` takes.

import type { OfferedModel } from '../../../api/projects.ts'
import type { CatalogEntry } from '../../catalog/entry.ts'
import { callApi, callForAll, type Key, type Project, type Workspace } from '../api.ts'
import type { Limits } from './figures.ts'

/** Of the keys that the playground creates, each for an hour. */
export const playgroundKeyName = 'playground'

export interface OwnKeyModels {
  /** By id. */
  readonly models: readonly OfferedModel[]
  /** False: no project may call all models, so models that no project may call are missing. */
  readonly isComplete: boolean
}

/** A workspace and its projects, archived ones included; without an id, all of them. */
export async function readProjectsOf(id: string | undefined) {
  const workspaces = id === undefined ? await callForAll('listWorkspaces', {}) : [await callApi('getWorkspace', { id })]
  const projects = await Promise.all(
    workspaces.map(({ id: each }) => callForAll('listProjects', { id: each, query: { archived: 'true' } })),
  )
  return { workspaces, projects: projects.flat() }
}

/** Limits the number of calls for a workspace where every project has an allowlist. */
const projectsMax = 20

/**
 * The models that a workspace's own provider keys unlock. The public catalog does not list them; a project's model list
 * does. Most workspaces have no own keys and need one call.
 */
export async function readOwnKeyModels(id: string): Promise<OwnKeyModels> {
  const credentials = await callApi('listCredentials', { id })
  if (credentials.data.length === 0) return { models: [], isComplete: true }
  const projects = await callForAll('listProjects', { id })
  // A project without an allowlist can call what any other project can.
  const open = projects.find(({ models }) => models === null)
  const queried = open ? [open] : projects.slice(0, projectsMax)
  const answers = await Promise.all(queried.map((project) => callApi('listProjectModels', { id: project.id })))
  const own = answers.flatMap(({ data }) => data).filter(({ own_key: isOwn }) => isOwn)
  const byId = new Map(own.map((model) => [model.id, model]))
  return { models: [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1)), isComplete: open !== undefined }
}

/** A project with its keys. Values are JSON, which is valid YAML, so that no name can break out of its quotes. */
export function projectYaml(workspace: Workspace, project: Project, keys: readonly Key[]): string {
  const lines = [
    'workspaces:',
    `  - name: ${JSON.stringify(workspace.name)}`,
    ...limitsLine(workspace.limits, '    '),
    '    projects:',
    `      - name: ${JSON.stringify(project.name)}`,
    ...(project.models === null ? [] : [`        models: ${JSON.stringify(project.models)}`]),
    ...(Object.keys(project.aliases).length === 0 ? [] : [`        aliases: ${JSON.stringify(project.aliases)}`]),
    ...(project.exports_content ? ['        exports_content: true'] : []),
    ...limitsLine(project.limits, '        '),
    ...(keys.length === 0 ? [] : ['        keys:', ...keys.map((key) => `          - ${keyYaml(key)}`)]),
  ]
  return `${lines.join('\n')}\n`
}

function keyYaml({ name, models, limits, sources, expires_at }: Key): string {
  return JSON.stringify({
    name,
    ...(models !== null && { models }),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(sources !== null && { sources }),
    ...(expires_at !== null && { expires_at }),
  })
}

function limitsLine(limits: Limits, indent: string): readonly string[] {
  return Object.keys(limits).length === 0 ? [] : [`${indent}limits: ${JSON.stringify(limits)}`]
}

/** A model's entry in tollgate.yaml. */
export function modelYaml({ id, price, routes }: CatalogEntry): string {
  const shownRoutes = routes.map(({ provider, upstream_model: model, priority, weight }) => {
    const members = { provider, model, ...(priority !== 1 && { priority }), ...(weight !== 1 && { weight }) }
    return `      - ${JSON.stringify(members)}`
  })
  const priced = price === null ? [] : [`    price: ${JSON.stringify(price)}`]
  return `${['models:', `  - id: ${JSON.stringify(id)}`, ...priced, '    routes:', ...shownRoutes].join('\n')}\n`
}
