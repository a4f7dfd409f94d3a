// What is there: every workspace with its projects and the keys that are good, read over the management API.

import { formatUsd, parseUsd } from '../../kernel/money.ts'
import type { ApiClient } from '../api-client.ts'
import { type JsonObject, objectOf, shownAt, textAt, textsOf } from '../json-members.ts'
import { Refusal } from '../refusal.ts'
import type { Declaration, DeclaredKey } from './declaration.ts'

export type LimitValues = Readonly<Record<string, number | string>>

export interface Thing {
  readonly id: string
  readonly name: string
  readonly limits: LimitValues
  /** `file`: some file made it, and only files change it. */
  readonly managedBy: string
}

export interface InstalledKey extends Thing {
  readonly models: readonly string[] | undefined
  readonly sources: readonly string[] | undefined
  readonly expiresAt: string | undefined
}

export interface InstalledProject extends Thing {
  readonly models: readonly string[] | undefined
  readonly keys: readonly InstalledKey[]
}

export interface InstalledWorkspace extends Thing {
  readonly projects: readonly InstalledProject[]
}

const allOfThem = 1_000_000

/** One list for all keys, and one for the projects of each workspace. */
export async function readInstallation(api: ApiClient): Promise<readonly InstalledWorkspace[] | Refusal> {
  const workspaces = await api.list('/api/workspaces', {}, allOfThem)
  if (workspaces instanceof Refusal) return workspaces
  const keys = await api.list('/api/keys', {}, allOfThem)
  if (keys instanceof Refusal) return keys
  const good = Map.groupBy(
    keys.data.filter((key) => textAt(key, 'status') === 'active'),
    (key) => shownAt(key, 'project_id'),
  )
  const installed: InstalledWorkspace[] = []
  for (const workspace of workspaces.data) {
    const thing = thingOf(workspace)
    const projects = await api.list(`/api/workspaces/${encodeURIComponent(thing.id)}/projects`, {}, allOfThem)
    if (projects instanceof Refusal) return projects
    const read = projects.data.map((project) => {
      const own = (good.get(shownAt(project, 'id')) ?? []).map(keyOf)
      return { ...thingOf(project), models: listAt(project, 'models'), keys: own }
    })
    installed.push({ ...thing, projects: read })
  }
  return installed
}

function thingOf(answer: JsonObject): Thing {
  return {
    id: shownAt(answer, 'id'),
    name: shownAt(answer, 'name'),
    limits: limitsOf(objectOf(answer.limits)),
    managedBy: textAt(answer, 'managed_by') ?? 'api',
  }
}

function keyOf(answer: JsonObject): InstalledKey {
  return {
    ...thingOf(answer),
    models: listAt(answer, 'models'),
    sources: listAt(answer, 'sources'),
    expiresAt: textAt(answer, 'expires_at'),
  }
}

function listAt(answer: JsonObject, name: string): readonly string[] | undefined {
  return Array.isArray(answer[name]) ? textsOf(answer[name]) : undefined
}

const limitNames = [
  'requests_per_minute',
  'tokens_per_minute',
  'concurrent_requests',
  'spend_per_day',
  'spend_per_month',
] as const

/** In one order and one spelling, so that two can be compared. */
export function limitsOf(limits: JsonObject): LimitValues {
  const known: Record<string, number | string> = {}
  for (const name of limitNames) {
    const value = limits[name]
    if (typeof value === 'number') known[name] = value
    const spend = typeof value === 'string' ? parseUsd(value) : undefined
    if (spend !== undefined) known[name] = formatUsd(spend)
  }
  return known
}

/** The installation as a file would declare it: ids only where a name alone would not do. */
export function declarationOf(installation: readonly InstalledWorkspace[]): Declaration {
  return {
    workspaces: installation.map((workspace) => ({
      ...named(workspace, installation),
      ...limited(workspace),
      projects: workspace.projects.map((project) => ({
        ...named(project, workspace.projects),
        ...(project.models && { models: [...project.models] }),
        ...limited(project),
        keys: project.keys.map((key) => declaredKey(key, project.keys)),
      })),
    })),
  }
}

function declaredKey(key: InstalledKey, siblings: readonly InstalledKey[]): DeclaredKey {
  return {
    ...named(key, siblings),
    ...(key.models && { models: [...key.models] }),
    ...limited(key),
    ...(key.sources && { sources: [...key.sources] }),
    ...(key.expiresAt !== undefined && { expires_at: key.expiresAt }),
  }
}

function named({ id, name }: Thing, siblings: readonly Thing[]) {
  const isAlone = siblings.filter((each) => each.name === name).length === 1
  return isAlone ? { name } : { name, id }
}

function limited({ limits }: Thing) {
  return Object.keys(limits).length === 0 ? {} : { limits }
}
