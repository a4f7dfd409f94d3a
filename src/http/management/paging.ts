// Lists: `limit` and `cursor` in, `data` and `next_cursor` out. A cursor is only good for the list it came from, and its
// text is nobody's business.

import { z } from 'zod'

const limitMax = 200
const limitDefault = 50
const limitExpected = `must be a whole number from 1 to ${limitMax}`

/** Visible characters only: what a list puts into a cursor is an id or a number. */
const placePattern = /^[!-~]{1,200}$/

export const pageFields = {
  limit: z.coerce
    .number({ error: limitExpected })
    .int({ error: limitExpected })
    .min(1, { error: limitExpected })
    .max(limitMax, { error: limitExpected })
    .default(limitDefault)
    .describe(`How many at most, 1 to ${limitMax}.`),
  cursor: z
    .string()
    .max(400, { error: 'is not a cursor of this list' })
    .transform((text, context) => {
      const place = Buffer.from(text, 'base64url').toString('latin1')
      if (placePattern.test(place)) return place
      context.addIssue({ code: 'custom', message: 'is not a cursor of this list' })
      return z.NEVER
    })
    .optional()
    .describe('`next_cursor` of the page before.'),
}

export const pageQuery = z.strictObject(pageFields)

export interface PageQuery {
  readonly limit: number
  readonly cursor?: string | undefined
}

/** As the stores take it, where absent is not the same as undefined. */
export function pageOf({ limit, cursor }: PageQuery): { readonly limit: number; readonly cursor?: string } {
  return cursor === undefined ? { limit } : { limit, cursor }
}

export function listSchema<Item extends z.ZodType>(item: Item) {
  return z.object({ data: z.array(item), next_cursor: z.string().nullable() })
}

export function listAnswer<Item>(data: readonly Item[], nextCursor: string | undefined) {
  return {
    data: [...data],
    next_cursor: nextCursor === undefined ? null : Buffer.from(nextCursor, 'latin1').toString('base64url'),
  }
}
