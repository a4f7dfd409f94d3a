// The models that spend limits name for when they are reached: each must be one that can be called.

import type { CatalogItem } from '../../api/catalog.ts'
import { invalidRequest } from '../../kernel/failure.ts'
import type { Sql } from '../../store/sql.ts'
import { allowsModel, createAllowlist } from '../../tenancy/allowlist.ts'
import { getKey } from '../../tenancy/keys.ts'
import type { LimitScope, Limits } from '../../tenancy/limits.ts'
import { getProject } from '../../tenancy/workspaces.ts'

type Models = readonly string[] | undefined

/** Most limits name none, and then the catalog need not be listed. */
export function namesModels({ spend = [] }: Limits): boolean {
  return spend.some(({ then }) => then !== undefined)
}

/**
 * Throws a Failure if a model is not in the catalog, has no price, or is not in one of the allowlists. `at`: `limits.` One that
 * the limits named before is not checked: it may have left the catalog since, and their other members must still be changeable.
 */
export function checkNextModels(
  { spend = [] }: Limits,
  { catalog, allowlists, at = '', before = {} }: NextModelFacts,
): void {
  const known = new Set(before.spend?.map(({ then }) => then))
  const lists = allowlists.flatMap((models) => (models === undefined ? [] : [createAllowlist(models)]))
  const field = `${at}spend_limits`
  for (const { then } of spend) {
    if (then === undefined || known.has(then)) continue
    const model = catalog.find(({ id }) => id === then)
    const why =
      model === undefined
        ? 'the catalog has no such model'
        : model.price === null
          ? 'that model has no price'
          : allowsModel(lists, then)
            ? undefined
            : 'the allowlist does not allow that model'
    if (why === undefined) continue
    throw invalidRequest(`\`${field}\`: \`then\` names ${then}, but ${why}. Name one that can be called.`, field)
  }
}

export interface NextModelFacts {
  readonly catalog: readonly Pick<CatalogItem, 'id' | 'price'>[]
  /** undefined = every model. */
  readonly allowlists: readonly Models[]
  readonly at?: string
  /** Absent = none. */
  readonly before?: Limits
}

/** The allowlists of whose limits they are. */
export async function allowlistsOf(sql: Sql, kind: LimitScope['kind'], id: string): Promise<readonly Models[]> {
  if (kind === 'workspace') return []
  if (kind === 'project') return [(await getProject(sql, id)).models]
  const { models, projectId } = await getKey(sql, id)
  return [models, (await getProject(sql, projectId)).models]
}
