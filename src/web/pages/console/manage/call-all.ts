// What several calls to the management API make together: all pages of a list, several answers as one.

import { callApi, Refusal } from '../parts/call-api.ts'
import type { ListAnswer } from '../parts/use-resource.ts'

/** Whatever a list says of itself, a page asks no longer than this. */
const pagesMax = 1000

/** All pages of a list; `path` may have a query. */
export async function callForAll<Item>(path: string): Promise<readonly Item[] | Refusal> {
  const items: Item[] = []
  const join = path.includes('?') ? '&' : '?'
  let cursor = ''
  for (let page = 0; page < pagesMax; page++) {
    const at = `${path}${join}limit=200${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
    const answer = await callApi<ListAnswer<Item>>(at)
    if (answer instanceof Refusal) return answer
    items.push(...answer.data)
    if (answer.next_cursor === null) break
    cursor = answer.next_cursor
  }
  return items
}

/** Several answers as one; the first refusal is that of all. */
export async function together<Values extends readonly unknown[]>(
  ...calls: { readonly [Index in keyof Values]: Promise<Values[Index] | Refusal> }
): Promise<Values | Refusal> {
  const answers: readonly unknown[] = await Promise.all(calls)
  // Each is what its place in the list says, as soon as none is a refusal.
  return answers.find((answer) => answer instanceof Refusal) ?? (answers as unknown as Values)
}
