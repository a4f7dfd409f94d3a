// Plans and applies the changes that make an installation what a file declares. Planning calls nothing, so `plan` shows
// exactly what `apply` does. After an interruption the next run plans the rest; nothing is done twice.

import type { ApiClient } from '../api-client.ts'
import { Refusal } from '../refusal.ts'
import { shownLimits } from '../table.ts'
import type { Declaration, DeclaredKey, DeclaredProject, DeclaredWorkspace } from './declaration.ts'
import {
  type InstalledKey,
  type InstalledProject,
  type InstalledWorkspace,
  type LimitValues,
  limitsOf,
  type Thing,
} from './declaration.ts'

/** The path of an object by the names in the file: `acme`, `acme/web`, `acme/web/ci`. */
export type Place = string

export type Change =
  | { readonly kind: 'create'; readonly what: 'workspace'; readonly place: Place; readonly wish: DeclaredWorkspace }
  | {
      readonly kind: 'create'
      readonly what: 'project'
      readonly place: Place
      readonly parent: Place
      readonly wish: DeclaredProject
    }
  | {
      readonly kind: 'create'
      readonly what: 'key'
      readonly place: Place
      readonly parent: Place
      readonly wish: DeclaredKey
    }
  | {
      readonly kind: 'allow'
      readonly what: 'project'
      readonly place: Place
      readonly from: readonly string[] | undefined
      readonly to: readonly string[] | undefined
    }
  | {
      readonly kind: 'limit'
      readonly what: Kind
      readonly place: Place
      readonly from: LimitValues
      readonly to: LimitValues
    }
  | { readonly kind: 'revoke'; readonly what: 'key'; readonly place: Place; readonly id: string }

export type Kind = 'workspace' | 'project' | 'key'

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

class PlanDraft implements Plan {
  readonly changes: Change[] = []
  readonly ids = new Map<Place, string>()
  readonly faults: string[] = []
  readonly left: string[] = []

  constructor(private readonly options: PlanOptions) {}

  workspaces(wishes: readonly DeclaredWorkspace[], installed: readonly InstalledWorkspace[]): void {
    const named = this.match('workspace', '', wishes, installed)
    for (const { wish, place, found } of named) {
      if (!found) this.changes.push({ kind: 'create', what: 'workspace', place, wish })
      this.limits('workspace', place, found?.limits ?? {}, wish.limits)
      this.projects(place, wish.projects ?? [], found?.projects ?? [])
    }
    for (const workspace of unnamed(installed, named)) {
      if (workspace.managedBy === 'file') this.left.push(`workspace ${workspace.name} (cannot be deleted)`)
      this.projects(step(workspace.name), [], workspace.projects)
    }
  }

  private projects(parent: Place, wishes: readonly DeclaredProject[], installed: readonly InstalledProject[]): void {
    const named = this.match('project', `${parent}/`, wishes, installed)
    for (const { wish, place, found } of named) {
      if (!found) this.changes.push({ kind: 'create', what: 'project', place, parent, wish })
      else if (!sameList(found.models, wish.models)) {
        this.changes.push({ kind: 'allow', what: 'project', place, from: found.models, to: wish.models ?? undefined })
      }
      this.limits('project', place, found?.limits ?? {}, wish.limits)
      this.keys(place, wish.keys ?? [], found?.keys ?? [])
    }
    for (const project of unnamed(installed, named)) {
      const place = `${parent}/${step(project.name)}`
      if (project.managedBy === 'file') this.left.push(`project ${place} (cannot be deleted)`)
      this.keys(place, [], project.keys)
    }
  }

  private keys(parent: Place, wishes: readonly DeclaredKey[], installed: readonly InstalledKey[]): void {
    const named = this.match('key', `${parent}/`, wishes, installed)
    for (const { wish, place, found } of named) {
      // Created with its limits in one call.
      if (!found) this.createKey({ kind: 'create', what: 'key', place, parent, wish })
      else {
        this.fixedMembers(place, wish, found)
        this.limits('key', place, found.limits, wish.limits)
      }
    }
    for (const key of unnamed(installed, named)) {
      if (key.managedBy !== 'file') continue
      const place = `${parent}/${step(key.name)}`
      if (this.options.prune) this.changes.push({ kind: 'revoke', what: 'key', place, id: key.id })
      else this.left.push(`key ${place} (revoked with --prune)`)
    }
  }

  /** An expired key was created and has ended, or never needs to be created. */
  private createKey(change: Extract<Change, { what: 'key'; kind: 'create' }>): void {
    const { place, wish } = change
    if (wish.expires_at == null || Date.parse(wish.expires_at) > this.options.now) this.changes.push(change)
    else this.left.push(`key ${place} (expired)`)
  }

  private fixedMembers(place: Place, wish: DeclaredKey, found: InstalledKey): void {
    const wrong = [
      ...(sameList(found.models, wish.models) ? [] : ['models']),
      ...(sameList(found.sources, wish.sources) ? [] : ['sources']),
      ...(sameTime(found.expiresAt, wish.expires_at) ? [] : ['expires_at']),
    ]
    if (wrong.length === 0) return
    this.faults.push(
      `key ${place}: ${wrong.join(', ')} of a key cannot be changed; declare a key of another name instead`,
    )
  }

  private limits(what: Kind, place: Place, found: LimitValues, wish: DeclaredWorkspace['limits']): void {
    const [from, to] = [limitsOf(found), limitsOf(wish ?? {})]
    if (JSON.stringify(from) !== JSON.stringify(to)) this.changes.push({ kind: 'limit', what, place, from, to })
  }

  private match<Wish extends { name: string; id?: string | undefined }, Found extends Thing>(
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
      if (id !== undefined && found.length === 0) this.faults.push(`${what} ${place}: there is none of this id`)
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

function unnamed<Found extends Thing>(
  installed: readonly Found[],
  named: readonly { readonly found: Found | undefined }[],
): readonly Found[] {
  return installed.filter(({ id }) => !named.some(({ found }) => found?.id === id))
}

/** The order does not matter; no allowlist is not the same as an empty one. */
function sameList(a: readonly string[] | undefined, b: readonly string[] | null | undefined): boolean {
  return JSON.stringify(a?.toSorted()) === JSON.stringify(b?.toSorted())
}

function sameTime(a: string | undefined, b: string | null | undefined): boolean {
  return a === undefined || b == null ? a === (b ?? undefined) : Date.parse(a) === Date.parse(b)
}

/** One line: `+` created, `~` changed, `-` revoked. */
export function describeChange(change: Change): string {
  const { kind, what, place } = change
  switch (kind) {
    case 'create':
      return `+ ${what} ${place}${createdWith(change)}`
    case 'allow':
      return `~ ${what} ${place}: models ${shownList(change.from)} → ${shownList(change.to)}`
    case 'limit':
      return `~ ${what} ${place}: limits ${shownLimits(change.from)} → ${shownLimits(change.to)}`
    case 'revoke':
      return `- ${what} ${place}: revoked`
  }
}

function createdWith(change: Extract<Change, { kind: 'create' }>): string {
  if (change.what === 'workspace') return ''
  const { wish } = change
  if (change.what === 'project') return `: models ${shownList(wish.models)}`
  // A key without an allowlist may call what its project may, which need not be everything.
  const models = wish.models == null ? "its project's" : shownList(wish.models)
  return `: models ${models}, limits ${shownLimits(change.wish.limits)}`
}

function shownList(list: readonly string[] | null | undefined): string {
  if (list == null) return 'all'
  return list.length === 0 ? 'none' : list.join(', ')
}

export interface CreatedKey {
  readonly place: Place
  readonly id: string
  /** Shown only once. */
  readonly secret: string
}

const putLimits = { workspace: 'putWorkspaceLimits', project: 'putProjectLimits', key: 'putKeyLimits' } as const

/** Calls `onChange` after each change, with the key if it created one. */
export async function applyPlan(
  api: ApiClient,
  plan: Plan,
  onChange: (change: Change, created: CreatedKey | undefined) => void,
): Promise<Refusal | undefined> {
  const ids = new Map(plan.ids)
  for (const change of plan.changes) {
    const answer = await applyChange(api, change, ids)
    if (answer instanceof Refusal) {
      return new Refusal(answer.exit, `${change.what} ${change.place}: ${answer.message}`, answer.attempt)
    }
    if (change.kind === 'create' && answer.id !== undefined) ids.set(change.place, answer.id)
    const { id = '', secret } = answer
    onChange(change, secret === undefined ? undefined : { place: change.place, id, secret })
  }
  return undefined
}

/** What was created has an id, and a key has a secret. */
interface Applied {
  readonly id?: string
  readonly secret?: string
}

async function applyChange(
  api: ApiClient,
  change: Change,
  ids: ReadonlyMap<Place, string>,
): Promise<Applied | Refusal> {
  const idOf = (place: Place) => ids.get(place) ?? ''
  const managedBy = 'file'
  switch (change.kind) {
    case 'create':
      return await create(api, change, idOf)
    case 'allow': {
      const models = change.to === undefined ? null : [...change.to]
      return await api.call('updateProject', { id: idOf(change.place), body: { models }, managedBy })
    }
    case 'limit': {
      const limits = await api.call(putLimits[change.what], { id: idOf(change.place), body: change.to, managedBy })
      return limits instanceof Refusal ? limits : {}
    }
    case 'revoke':
      return await api.call('revokeKey', { id: change.id, body: {}, managedBy })
  }
}

async function create(
  api: ApiClient,
  change: Extract<Change, { kind: 'create' }>,
  idOf: (place: Place) => string,
): Promise<Applied | Refusal> {
  const managedBy = 'file'
  if (change.what === 'workspace') {
    return await api.call('createWorkspace', { body: { name: change.wish.name }, managedBy })
  }
  const id = idOf(change.parent)
  if (change.what === 'project') {
    const { name, models } = change.wish
    return await api.call('createProject', { id, body: { name, models: models ?? null }, managedBy })
  }
  const { id: _, ...body } = change.wish
  return await api.call('createKey', { id, body, managedBy })
}
