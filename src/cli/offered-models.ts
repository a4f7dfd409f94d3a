// Warns of a project or a key that can call nothing: a list of models that fits none of those on offer is allowed, since
// a provider may be switched on later, but it is more often a slip.

import { allowsModel, createAllowlist } from '../tenancy/allowlist.ts'
import type { CommandContext } from './command.ts'
import { type JsonObject, objectsOf, shownAt, textsOf } from './json-members.ts'
import { Refusal } from './refusal.ts'

export interface Buyer {
  readonly what: 'project' | 'key'
  readonly projectId: string
  /** With its own list, where it has one. */
  readonly thing: JsonObject
}

export async function warnIfNothingOffered(
  { api, terminal }: CommandContext,
  { what, projectId, thing }: Buyer,
): Promise<void> {
  const offered = await api.call({ path: `/api/projects/${encodeURIComponent(projectId)}/models` })
  // The project or key is made; that this cannot be asked is no reason to say that it failed.
  if (offered instanceof Refusal) return
  const own = Array.isArray(thing.models) ? [createAllowlist(textsOf(thing.models))] : []
  if (objectsOf(offered.data).some((model) => allowsModel(own, shownAt(model, 'id')))) return
  terminal.complain(
    `Warning: this ${what} can call none of the models on offer now. What there is: tollgate models; what other providers need: tollgate providers\n`,
  )
}
