// What a file declares and what is installed: workspaces, their projects and keys, with allowlists and limits. The file is
// complete for what it names and does not affect anything else. It never holds a secret.

import { stringify } from 'yaml'
import { z } from 'zod'
import type { AnswerOf } from '../../api/client.ts'
import { readDocument } from '../../config/document.ts'
import { type ConfigFault, type ConfigPath, checkSchema, formatPath, type SchemaFault } from '../../config/fault.ts'
import { formatUsd, parseUsd } from '../../kernel/money.ts'
import type { ApiClient } from '../api-client.ts'
import { Refusal } from '../refusal.ts'

const count = z.int().min(1).optional()
const amount = z
  .union([z.string(), z.number()], { error: 'expected USD as a decimal string such as "5.00"' })
  .transform((value, context) => {
    const parsed = parseUsd(String(value))
    if (parsed !== undefined) return formatUsd(parsed)
    context.addIssue({ code: 'custom', message: 'expected USD as a decimal string such as "5.00"' })
    return z.NEVER
  })
  .optional()

const limits = z
  .strictObject({
    requests_per_minute: count,
    tokens_per_minute: count,
    concurrent_requests: count,
    spend_per_day: amount,
    spend_per_month: amount,
  })
  .nullish()

const name = z.string().min(1)
/** Only needed if several have the same name. */
const id = z.string().min(1).optional()
const models = z.array(z.string().min(1)).nullish()

const keySchema = z.strictObject({
  name,
  id,
  models,
  limits,
  sources: z.array(z.string().min(1)).nullish(),
  expires_at: z.iso.datetime({ offset: true, error: 'expected a time such as "2027-01-31T00:00:00Z"' }).nullish(),
})
const projectSchema = z.strictObject({ name, id, models, limits, keys: z.array(keySchema).nullish() })
const workspaceSchema = z.strictObject({ name, id, limits, projects: z.array(projectSchema).nullish() })
export const declarationSchema = z.strictObject({ workspaces: z.array(workspaceSchema).nullish() })

export type Declaration = z.output<typeof declarationSchema>
export type DeclaredWorkspace = z.output<typeof workspaceSchema>
export type DeclaredProject = z.output<typeof projectSchema>
export type DeclaredKey = z.output<typeof keySchema>

export function readDeclaration(
  fileName: string,
  text: string,
): Declaration | { readonly faults: readonly ConfigFault[] } {
  const document = readDocument(fileName, text)
  if ('faults' in document) return document
  const checked = checkSchema(declarationSchema, document.value ?? {})
  const found = 'faults' in checked ? checked.faults : repeatedNames(checked.value)
  if ('value' in checked && found.length === 0) return checked.value
  return {
    faults: found.map(({ path, at, message }) => ({
      where: document.place(document.offset(path, at)),
      field: formatPath(path),
      message,
    })),
  }
}

interface Named {
  readonly name: string
  readonly id?: string | undefined
}

function repeatedNames({ workspaces }: Declaration): SchemaFault[] {
  const inList = (list: readonly Named[], path: ConfigPath): SchemaFault[] =>
    list.flatMap(({ name: own, id: ownId }, at) => {
      const isRepeated = ownId === undefined && list.findIndex((each) => each.name === own) < at
      const message = 'this name stands twice; give both an id'
      return isRepeated ? [{ path: [...path, at, 'name'], at: 'value' as const, message }] : []
    })
  return [
    ...inList(workspaces ?? [], ['workspaces']),
    ...(workspaces ?? []).flatMap(({ projects }, w) => [
      ...inList(projects ?? [], ['workspaces', w, 'projects']),
      ...(projects ?? []).flatMap(({ keys }, p) => inList(keys ?? [], ['workspaces', w, 'projects', p, 'keys'])),
    ]),
  ]
}

/** As `readDeclaration` takes it. */
export function renderDeclaration(declaration: Declaration): string {
  const head =
    '# Made by `tollgate config export`; taken by `tollgate config plan FILE` and `apply FILE`. Holds no secret.\n'
  return head + stringify(declaration, { lineWidth: 120, aliasDuplicateObjects: false })
}

export type LimitValues = Readonly<Record<string, number | string>>

export interface Thing {
  readonly id: string
  readonly name: string
  readonly limits: LimitValues
  /** `file`: a file created it, and only files change it. */
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
  const workspaces = await api.list('listWorkspaces', {}, allOfThem)
  if (workspaces instanceof Refusal) return workspaces
  const keys = await api.list('listKeys', {}, allOfThem)
  if (keys instanceof Refusal) return keys
  const active = Map.groupBy(
    keys.data.filter(({ status }) => status === 'active'),
    (key) => key.project_id,
  )
  const installed: InstalledWorkspace[] = []
  for (const workspace of workspaces.data) {
    const thing = thingOf(workspace)
    const projects = await api.list('listProjects', { id: thing.id }, allOfThem)
    if (projects instanceof Refusal) return projects
    const read = projects.data.map((project) => {
      const own = (active.get(project.id) ?? []).map(keyOf)
      return { ...thingOf(project), models: project.models ?? undefined, keys: own }
    })
    installed.push({ ...thing, projects: read })
  }
  return installed
}

function thingOf({ id, name, limits, managed_by }: AnswerOf<'getWorkspace' | 'getProject' | 'getKey'>): Thing {
  return { id, name, limits: limitsOf(limits), managedBy: managed_by }
}

function keyOf(key: AnswerOf<'getKey'>): InstalledKey {
  const { models, sources, expires_at: expiresAt } = key
  return {
    ...thingOf(key),
    models: models ?? undefined,
    sources: sources ?? undefined,
    expiresAt: expiresAt ?? undefined,
  }
}

const limitNames = [
  'requests_per_minute',
  'tokens_per_minute',
  'concurrent_requests',
  'spend_per_day',
  'spend_per_month',
] as const

/** In a fixed order and spelling, so that two can be compared. */
export function limitsOf(limits: Readonly<Record<string, unknown>>): LimitValues {
  const known: Record<string, number | string> = {}
  for (const name of limitNames) {
    const value = limits[name]
    if (typeof value === 'number') known[name] = value
    const spend = typeof value === 'string' ? parseUsd(value) : undefined
    if (spend !== undefined) known[name] = formatUsd(spend)
  }
  return known
}

/** The installation as a file would declare it, with ids only where a name is not unique. */
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
