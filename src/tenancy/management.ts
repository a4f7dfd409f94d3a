// What the management of workspaces, projects and keys shares: who acts, names, and lists in pages.

import { type Failure, invalidRequest } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'

/** Who does something, and when. */
export interface Act {
  /** Such as `management token`, `console session`. */
  readonly actor: string
  readonly at: number
  readonly requestId?: RequestId | undefined
  /** On behalf of a file, which says nothing about who did it. */
  readonly managedBy?: 'file' | undefined
}

// Names of workspaces, projects and keys are free text for people; only what could not be shown or stored is refused.

const nameLengthMax = 100
/** Control characters and lone surrogates: they break terminals and logs, and PostgreSQL refuses some of them. */
const unshowable = /[\p{Cc}\p{Cs}\u2028\u2029]/u

export function checkName(name: string): Failure | undefined {
  if (name.trim() === '') return invalidRequest('`name` must not be empty.', 'name')
  if (name.length > nameLengthMax) return invalidRequest(`\`name\` has more than ${nameLengthMax} characters.`, 'name')
  if (unshowable.test(name)) return invalidRequest('`name` must be one line of printable text.', 'name')
  return undefined
}

// Things that a file declares are changed by that file alone: whoever else changed one would see it undone by the next
// `config apply`, and the file would no longer say what is in force.

/** A file that was applied, or whoever has the management token. */
export type ManagedBy = 'api' | 'file'

export function managerOf({ managedBy }: Act): ManagedBy {
  return managedBy ?? 'api'
}

const wayOut = {
  workspace: '',
  project: '',
  key: ' If its secret leaked, rotate it: that ends the secret and leaves the key as the file has it.',
} as const

/** undefined = it may be changed so. */
export function refuseChange(
  kind: keyof typeof wayOut,
  thing: { readonly managedBy: ManagedBy },
  act: Act,
): Failure | undefined {
  if (thing.managedBy === 'api' || managerOf(act) === 'file') return undefined
  const message = `This ${kind} is managed by a file; change it there and run \`tollgate config apply FILE\`.${wayOut[kind]}`
  return invalidRequest(message)
}

// Lists in pages, by id: an id ascends with time, so what is added while somebody turns the pages comes on a later one.

export interface PageQuery {
  /** How many items at most. */
  readonly limit: number
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined
}

export interface Page<Item> {
  readonly items: readonly Item[]
  /** undefined = the last page. */
  readonly nextCursor: string | undefined
}

/** One more than asked for tells whether another page follows. */
export function rowsWanted({ limit }: PageQuery): bigint {
  return BigInt(limit + 1)
}

/** Ids come after the cursor; without one, from the first. Not an id: nothing comes after it. */
export function afterCursor({ cursor = '' }: PageQuery): string {
  return /^[0-9A-Za-z_]{0,40}$/.test(cursor) ? cursor : 'zzzz'
}

export function pageOf<Item extends { readonly id: string }>(rows: readonly Item[], { limit }: PageQuery): Page<Item> {
  const items = rows.slice(0, limit)
  return { items, nextCursor: rows.length > limit ? items.at(-1)?.id : undefined }
}
