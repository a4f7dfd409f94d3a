// Shared by the management of workspaces, projects and keys: who acts, names, and lists in pages. An impossible change is
// thrown as a Failure, which ends the transaction; the management API answers it.

import { Failure, invalidRequest } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { hideKeys } from './api-key.ts'

/** Who makes a change, and when. */
export interface Act {
  /** Such as `management token`, `console session`. */
  readonly actor: string
  readonly at: number
  readonly requestId?: RequestId | undefined
  /** Set for changes by `config apply`; the actor is still the caller. */
  readonly managedBy?: 'file' | undefined
}

const nameLengthMax = 100
/**
 * Control characters and lone surrogates, which break terminals and logs, and some of which PostgreSQL rejects; and those that
 * change the direction of text, so that a name could be shown as another one.
 */
const unshowable = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

export function checkName(name: string): void {
  if (name.trim() === '') throw invalidRequest('`name` must not be empty.', 'name')
  if (name.length > nameLengthMax) throw invalidRequest(`\`name\` has more than ${nameLengthMax} characters.`, 'name')
  if (unshowable.test(name)) throw invalidRequest('`name` must be one line of printable text.', 'name')
}

/** As much of a text from elsewhere as a name may have, without keys and tokens; empty if it has nothing to show. */
export function nameFrom(text: string): string {
  const parts = hideKeys(text).trim().slice(0, nameLengthMax).split(unshowable)
  return parts.join(' ').replace(/\s+/g, ' ').trim()
}

/**
 * Objects that a file declares are changed by that file only: the next `config apply` would undo any other change, and
 * the file would no longer describe the state.
 */
export type ManagedBy = 'api' | 'file'

export function managerOf({ managedBy }: Act): ManagedBy {
  return managedBy ?? 'api'
}

const advice = {
  'list of managed settings': '',
  workspace: '',
  project: '',
  group: '',
  key: ' If its secret leaked, rotate it: that ends the secret and leaves the key as the file has it.',
} as const

export function checkManager(kind: keyof typeof advice, { managedBy }: { managedBy: ManagedBy }, act: Act): void {
  if (managedBy === 'api' || managerOf(act) === 'file') return
  const message = `This ${kind} is managed by a file; change it there and run \`tollgate config apply FILE\`.${advice[kind]}`
  throw invalidRequest(message)
}

/** The same message for an id that never existed, is of another kind, or belongs to someone else. */
export function notFound(kind: string, id: string): Failure {
  const shown = hideKeys(id)
  return new Failure('NOT_FOUND', `There is no ${kind} ${shown.length > 60 ? `${shown.slice(0, 60)}…` : shown}.`)
}

/** Pages are ordered by id. Ids ascend with time, so objects added meanwhile come on a later page. */
export interface PageQuery {
  readonly limit: number
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined
}

export interface Page<Item> {
  readonly items: readonly Item[]
  /** undefined = the last page. */
  readonly nextCursor: string | undefined
}

/** One more than the limit, to know whether another page follows. */
export function rowsWanted({ limit }: PageQuery): bigint {
  return BigInt(limit + 1)
}

/** An invalid cursor is after every id, so the page is empty. */
export function afterCursor({ cursor = '' }: PageQuery): string {
  return /^[0-9A-Za-z_]{0,40}$/.test(cursor) ? cursor : 'zzzz'
}

export function pageOf<Item extends { readonly id: string }>(rows: readonly Item[], { limit }: PageQuery): Page<Item> {
  const items = rows.slice(0, limit)
  return { items, nextCursor: rows.length > limit ? items.at(-1)?.id : undefined }
}
