// What has to change so that an installation is as a file declares it. It decides and calls nobody, so that `plan` shows
// exactly what `apply` does.

import { shownLimits } from '../shown-values.ts'
import type { Declaration, DeclaredKey, DeclaredProject, DeclaredWorkspace } from './declaration.ts'
import {
  type InstalledKey,
  type InstalledProject,
  type InstalledWorkspace,
  type LimitValues,
  limitsOf,
  type Thing,
} from './installation.ts'

/** Where something stands, by the names in the file: `acme`, `acme/web`, `acme/web/ci`. */
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
  /** By place, of what is there already. */
  readonly ids: ReadonlyMap<Place, string>
  /** What the file asks for and nobody can do; nothing is applied then. */
  readonly faults: readonly string[]
  /** Made by a file and not in this one; left alone. */
  readonly left: readonly string[]
}

export interface PlanOptions {
  /** Whether keys that a file made, and this one does not name, are revoked. */
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
      // Made with its limits, in one call.
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

  /** One whose time is over was made and has ended, or never needs to be. */
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

/** A name as a part of a place: two places that read the same are the same. */
function step(name: string): string {
  return name.replace(/[\\/#]/g, '\\$&')
}

function unnamed<Found extends Thing>(
  installed: readonly Found[],
  named: readonly { readonly found: Found | undefined }[],
): readonly Found[] {
  return installed.filter(({ id }) => !named.some(({ found }) => found?.id === id))
}

/** An allowlist means the same in any order; none is not the same as an empty one. */
function sameList(a: readonly string[] | undefined, b: readonly string[] | null | undefined): boolean {
  return JSON.stringify(a?.toSorted()) === JSON.stringify(b?.toSorted())
}

function sameTime(a: string | undefined, b: string | null | undefined): boolean {
  return a === undefined || b == null ? a === (b ?? undefined) : Date.parse(a) === Date.parse(b)
}

/** One line for people: `+` made, `~` changed, `-` ended. */
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
  // Without a list of its own a key may what its project may, which need not be everything.
  const models = wish.models == null ? "its project's" : shownList(wish.models)
  return `: models ${models}, limits ${shownLimits(change.wish.limits)}`
}

function shownList(list: readonly string[] | null | undefined): string {
  if (list == null) return 'all'
  return list.length === 0 ? 'none' : list.join(', ')
}
