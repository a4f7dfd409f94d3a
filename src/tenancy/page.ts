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
