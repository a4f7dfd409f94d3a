// Workspaces, projects and keys as a file declares them, and the changes that make an installation match it. The file is
// complete for what it names, does not affect anything else, and never holds a secret. Planning calls nothing, so `plan`
// shows exactly what `apply` does. After an interruption the next run plans the rest; nothing is done twice.

import { stringify } from 'yaml'
import { z } from 'zod'
import type { AnswerOf } from '../api/client.ts'
import {
  type ConfigFault,
  type ConfigPath,
  checkSchema,
  formatPath,
  readDocument,
  type SchemaFault,
} from '../config/document.ts'
import { formatUsd, parseUsd } from '../kernel/money.ts'
import type { ApiClient } from './api-client.ts'
import { Refusal, tryTo } from './refusal.ts'
import { shownLimits } from './values.ts'

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

const limitFields = {
  requests_per_minute: count,
  tokens_per_minute: count,
  concurrent_requests: count,
  spend_per_day: amount,
  spend_per_month: amount,
}
const limits = z.strictObject(limitFields).nullish()

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
const declarationSchema = z.strictObject({ workspaces: z.array(workspaceSchema).nullish() })

export type Declaration = z.output<typeof declarationSchema>
type DeclaredWorkspace = z.output<typeof workspaceSchema>
type DeclaredProject = z.output<typeof projectSchema>
type DeclaredKey = z.output<typeof keySchema>

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
      const message = 'this name is used twice; give both an id'
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
    '# Made by `tollgate config export`, for `tollgate config plan FILE` and `apply FILE`. Contains no secrets.\n'
  return head + stringify(declaration, { lineWidth: 120, aliasDuplicateObjects: false })
}

export type InstalledKey = AnswerOf<'getKey'>
export type InstalledProject = AnswerOf<'getProject'> & { readonly keys: readonly InstalledKey[] }
export type InstalledWorkspace = AnswerOf<'getWorkspace'> & { readonly projects: readonly InstalledProject[] }

const allOfThem = 1_000_000

/** One list for all keys, and one for the projects of each workspace. Revoked and expired keys are left out. */
export async function readInstallation(api: ApiClient): Promise<readonly InstalledWorkspace[]> {
  const workspaces = await api.list('listWorkspaces', {}, allOfThem)
  const keys = await api.list('listKeys', {}, allOfThem)
  const active = Map.groupBy(
    keys.data.filter(({ status }) => status === 'active'),
    (key) => key.project_id,
  )
  const installed: InstalledWorkspace[] = []
  for (const workspace of workspaces.data) {
    const projects = await api.list('listProjects', { id: workspace.id }, allOfThem)
    const withKeys = projects.data.map((project) => ({ ...project, keys: active.get(project.id) ?? [] }))
    installed.push({ ...workspace, projects: withKeys })
  }
  return installed
}

type LimitValues = Readonly<Record<string, number | string>>

/** In a fixed order and spelling, so that two can be compared. */
function limitsOf(limits: Readonly<Record<string, unknown>> | null | undefined): LimitValues {
  const known: Record<string, number | string> = {}
  for (const field of Object.keys(limitFields)) {
    const value = limits?.[field]
    if (typeof value === 'number') known[field] = value
    const spend = typeof value === 'string' ? parseUsd(value) : undefined
    if (spend !== undefined) known[field] = formatUsd(spend)
  }
  return known
}

/** The installation as a file would declare it, with ids only where a name is not unique. */
export function declarationOf(installation: readonly InstalledWorkspace[]): Declaration {
  return {
    workspaces: installation.map((workspace) => ({
      ...declared(workspace, installation),
      projects: workspace.projects.map((project) => ({
        ...declared(project, workspace.projects),
        keys: project.keys.map((key) => ({
          ...declared(key, project.keys),
          ...(key.sources && { sources: [...key.sources] }),
          ...(key.expires_at !== null && { expires_at: key.expires_at }),
        })),
      })),
    })),
  }
}

function declared(thing: Installed & { readonly models?: readonly string[] | null }, siblings: readonly Installed[]) {
  const isUnique = siblings.filter((each) => each.name === thing.name).length === 1
  const own = limitsOf(thing.limits)
  return {
    name: thing.name,
    ...(!isUnique && { id: thing.id }),
    ...(thing.models && { models: [...thing.models] }),
    ...(Object.keys(own).length > 0 && { limits: own }),
  }
}

/** The path of an object by the names in the file: `acme`, `acme/web`, `acme/web/ci`. */
type Place = string
type Kind = 'workspace' | 'project' | 'key'

interface Installed {
  readonly id: string
  readonly name: string
  readonly limits: Readonly<Record<string, unknown>>
  /** `file`: a file created it, and only files change it. */
  readonly managed_by: string
}

export interface Change {
  readonly action: 'create' | 'allow' | 'limit' | 'revoke'
  readonly what: Kind
  readonly place: Place
  /** What follows the place on its line: `: limits none → 60 rpm`. */
  readonly detail: string
  /** `idOf` also knows what earlier changes have created. */
  call(api: ApiClient, idOf: (place: Place) => string): Promise<object>
}

export interface Plan {
  readonly changes: readonly Change[]
  /** Ids of existing objects by place. */
  readonly ids: ReadonlyMap<Place, string>
  /** Declared changes that are impossible; nothing is applied then. */
  readonly faults: readonly string[]
  /** Created by a file but not in this one; left unchanged. */
  readonly left: readonly string[]
}

export interface PlanOptions {
  /** Revoke keys that a file created and this one does not name. */
  readonly prune: boolean
  readonly now: number
}

export function planChanges(
  { workspaces }: Declaration,
  installation: readonly InstalledWorkspace[],
  options: PlanOptions,
): Plan {
  const draft = new PlanDraft(options)
  draft.workspaces(workspaces ?? [], installation)
  return draft
}

const putLimits = { workspace: 'putWorkspaceLimits', project: 'putProjectLimits', key: 'putKeyLimits' } as const
const managedBy = 'file'

class PlanDraft implements Plan {
  readonly changes: Change[] = []
  readonly ids = new Map<Place, string>()
  readonly faults: string[] = []
  readonly left: string[] = []

  constructor(private readonly options: PlanOptions) {}

  workspaces(wishes: readonly DeclaredWorkspace[], installed: readonly InstalledWorkspace[]): void {
    const what = 'workspace'
    const named = this.match(what, '', wishes, installed)
    for (const { wish, place, found } of named) {
      if (!found) {
        const call: Change['call'] = (api) => api.call('createWorkspace', { body: { name: wish.name }, managedBy })
        this.changes.push({ action: 'create', what, place, detail: '', call })
      }
      this.limits(what, place, found, wish)
      this.projects(place, wish.projects ?? [], found?.projects ?? [])
    }
    for (const workspace of unnamed(installed, named)) {
      if (workspace.managed_by === 'file') this.left.push(`workspace ${workspace.name} (cannot be deleted)`)
      this.projects(step(workspace.name), [], workspace.projects)
    }
  }

  private projects(parent: Place, wishes: readonly DeclaredProject[], installed: readonly InstalledProject[]): void {
    const what = 'project'
    const named = this.match(what, `${parent}/`, wishes, installed)
    for (const { wish, place, found } of named) {
      const models = wish.models ?? null
      if (!found) {
        const body = { name: wish.name, models }
        const call: Change['call'] = (api, idOf) => api.call('createProject', { id: idOf(parent), body, managedBy })
        this.changes.push({ action: 'create', what, place, detail: `: models ${shownList(models)}`, call })
      } else if (!sameList(found.models, models)) {
        const detail = `: models ${shownList(found.models)} → ${shownList(models)}`
        const call: Change['call'] = (api) => api.call('updateProject', { id: found.id, body: { models }, managedBy })
        this.changes.push({ action: 'allow', what, place, detail, call })
      }
      this.limits(what, place, found, wish)
      this.keys(place, wish.keys ?? [], found?.keys ?? [])
    }
    for (const project of unnamed(installed, named)) {
      const place = `${parent}/${step(project.name)}`
      if (project.managed_by === 'file') this.left.push(`project ${place} (cannot be deleted)`)
      this.keys(place, [], project.keys)
    }
  }

  private keys(parent: Place, wishes: readonly DeclaredKey[], installed: readonly InstalledKey[]): void {
    const what = 'key'
    const named = this.match(what, `${parent}/`, wishes, installed)
    for (const { wish, place, found } of named) {
      if (!found) this.createKey(parent, place, wish)
      else {
        this.refuseFixedMembers(place, wish, found)
        this.limits(what, place, found, wish)
      }
    }
    for (const { id, name, managed_by } of unnamed(installed, named)) {
      if (managed_by !== 'file') continue
      const place = `${parent}/${step(name)}`
      const call: Change['call'] = (api) => api.call('revokeKey', { id, body: {}, managedBy })
      if (this.options.prune) this.changes.push({ action: 'revoke', what, place, detail: ': revoked', call })
      else this.left.push(`key ${place} (revoked with --prune)`)
    }
  }

  /** With its limits in one call. An expired key was created and has ended, or never needs to be created. */
  private createKey(parent: Place, place: Place, { id: _, ...body }: DeclaredKey): void {
    if (body.expires_at != null && Date.parse(body.expires_at) <= this.options.now) {
      this.left.push(`key ${place} (expired)`)
      return
    }
    // A key without an allowlist may call what its project may, which need not be everything.
    const models = body.models == null ? "its project's" : shownList(body.models)
    const detail = `: models ${models}, limits ${shownLimits(body.limits)}`
    const call: Change['call'] = (api, idOf) => api.call('createKey', { id: idOf(parent), body, managedBy })
    this.changes.push({ action: 'create', what: 'key', place, detail, call })
  }

  private refuseFixedMembers(place: Place, wish: DeclaredKey, found: InstalledKey): void {
    const wrong = [
      ...(sameList(found.models, wish.models) ? [] : ['models']),
      ...(sameList(found.sources, wish.sources) ? [] : ['sources']),
      ...(sameTime(found.expires_at, wish.expires_at) ? [] : ['expires_at']),
    ]
    if (wrong.length === 0) return
    this.faults.push(
      `key ${place}: ${wrong.join(', ')} of a key cannot be changed; declare a key of another name instead`,
    )
  }

  private limits(what: Kind, place: Place, found: Installed | undefined, wish: Pick<DeclaredKey, 'limits'>): void {
    const [from, to] = [limitsOf(found?.limits), limitsOf(wish.limits)]
    if (Bun.deepEquals(from, to)) return
    const detail = `: limits ${shownLimits(from)} → ${shownLimits(to)}`
    const call: Change['call'] = (api, idOf) => api.call(putLimits[what], { id: idOf(place), body: to, managedBy })
    this.changes.push({ action: 'limit', what, place, detail, call })
  }

  private match<Wish extends Named, Found extends Installed>(
    what: Kind,
    prefix: string,
    wishes: readonly Wish[],
    installed: readonly Found[],
  ): readonly { readonly wish: Wish; readonly place: Place; readonly found: Found | undefined }[] {
    return wishes.map((wish) => {
      const { id, name } = wish
      const place = `${prefix}${step(name)}${id === undefined ? '' : `#${id}`}`
      const found = installed.filter((each) => (id === undefined ? each.name === name : each.id === id))
      if (found.length > 1) {
        const ids = found.map((each) => each.id).join(', ')
        this.faults.push(`${what} ${place}: several have this name; say which with id: ${ids}`)
      }
      if (id !== undefined && found.length === 0) this.faults.push(`${what} ${place}: there is none with this id`)
      const [only] = found
      if (only) this.ids.set(place, only.id)
      return { wish, place, found: only }
    })
  }
}

/** A name as a part of a place, escaped so that different names never give the same place. */
function step(name: string): string {
  return name.replace(/[\\/#]/g, '\\$&')
}

function unnamed<Found extends Installed>(
  installed: readonly Found[],
  named: readonly { readonly found: Found | undefined }[],
): readonly Found[] {
  return installed.filter(({ id }) => !named.some(({ found }) => found?.id === id))
}

type List = readonly string[] | null | undefined

/** The order does not matter; no allowlist is not the same as an empty one. */
function sameList(a: List, b: List): boolean {
  return Bun.deepEquals(a?.toSorted(), b?.toSorted())
}

function sameTime(a: string | null, b: string | null | undefined): boolean {
  return a === null || b == null ? a === (b ?? null) : Date.parse(a) === Date.parse(b)
}

function shownList(list: List): string {
  if (list == null) return 'all'
  return list.length === 0 ? 'none' : list.join(', ')
}

const signs = { create: '+', allow: '~', limit: '~', revoke: '-' } as const

/** One line: `+` created, `~` changed, `-` revoked. */
export function describeChange({ action, what, place, detail }: Change): string {
  return `${signs[action]} ${what} ${place}${detail}`
}

export interface CreatedKey {
  readonly place: Place
  readonly id: string
  /** Shown only once. */
  readonly secret: string
}

/** Calls `onChange` after each change, with the key if it created one. */
export async function applyPlan(
  api: ApiClient,
  plan: Plan,
  onChange: (change: Change, created: CreatedKey | undefined) => void,
): Promise<void> {
  const ids = new Map(plan.ids)
  for (const change of plan.changes) {
    const { what, place } = change
    const answer = await tryTo(change.call(api, (of) => ids.get(of) ?? ''))
    if (answer instanceof Refusal) throw new Refusal(answer.exit, `${what} ${place}: ${answer.message}`, answer.attempt)
    // What was created has an id, and a key has a secret.
    const { id = '', secret }: { readonly id?: string; readonly secret?: string } = answer
    if (change.action === 'create') ids.set(place, id)
    onChange(change, secret === undefined ? undefined : { place, id, secret })
  }
}
