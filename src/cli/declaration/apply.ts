// Makes planned changes over the management API, one after the other. Cut off anywhere, what is left is planned again by
// the next run; nothing is done twice.

import type { ApiCall, ApiClient } from '../api-client.ts'
import { type JsonObject, shownAt, textAt } from '../json-members.ts'
import { Refusal } from '../refusal.ts'
import type { Change, Kind, Place, Plan } from './plan.ts'

export interface CreatedKey {
  readonly place: Place
  readonly id: string
  /** Shown this once. */
  readonly secret: string
}

const collections: Readonly<Record<Kind, string>> = { workspace: 'workspaces', project: 'projects', key: 'keys' }

/** `onChange` is told of each as soon as it is made, with the key where it made one. */
export async function applyPlan(
  api: ApiClient,
  plan: Plan,
  onChange: (change: Change, created: CreatedKey | undefined) => void,
): Promise<Refusal | undefined> {
  const ids = new Map(plan.ids)
  for (const change of plan.changes) {
    const answer = await api.call({ ...callOf(change, ids), managedBy: 'file' })
    if (answer instanceof Refusal) {
      return new Refusal(answer.exit, `${change.what} ${change.place}: ${answer.message}`, answer.attempt)
    }
    if (change.kind === 'create') ids.set(change.place, shownAt(answer, 'id'))
    onChange(change, createdKey(change, answer))
  }
  return undefined
}

function callOf(change: Change, ids: ReadonlyMap<Place, string>): ApiCall {
  const idOf = (place: Place) => encodeURIComponent(ids.get(place) ?? '')
  switch (change.kind) {
    case 'create':
      return createCall(change, idOf)
    case 'allow':
      return { method: 'PATCH', path: `/api/projects/${idOf(change.place)}`, body: { models: change.to ?? null } }
    case 'limit':
      return {
        method: 'PUT',
        path: `/api/${collections[change.what]}/${idOf(change.place)}/limits`,
        body: change.to,
      }
    case 'revoke':
      return { method: 'POST', path: `/api/keys/${encodeURIComponent(change.id)}/revoke`, body: {} }
  }
}

function createCall(change: Extract<Change, { kind: 'create' }>, idOf: (place: Place) => string): ApiCall {
  const { wish } = change
  if (change.what === 'workspace') return { method: 'POST', path: '/api/workspaces', body: { name: wish.name } }
  const parent = idOf(change.parent)
  if (change.what === 'project') {
    const { name, models } = change.wish
    return { method: 'POST', path: `/api/workspaces/${parent}/projects`, body: { name, models: models ?? null } }
  }
  const { id: _, ...body } = change.wish
  return { method: 'POST', path: `/api/projects/${parent}/keys`, body }
}

function createdKey(change: Change, answer: JsonObject): CreatedKey | undefined {
  const secret = textAt(answer, 'secret')
  if (change.kind !== 'create' || change.what !== 'key' || secret === undefined) return undefined
  return { place: change.place, id: shownAt(answer, 'id'), secret }
}
