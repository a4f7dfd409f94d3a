// A list whose further pages are asked for one by one, oldest last; for lists whose items have no id.

import { useState } from 'preact/hooks'
import { callApi, type Refusal } from '../parts/call-api.ts'
import type { ListAnswer } from '../parts/use-resource.ts'
import { type Loaded, useLoad } from './use-load.ts'
import { useSubmit } from './use-submit.ts'

export interface Pages<Item> {
  readonly first: Loaded<ListAnswer<Item>>
  readonly items: readonly Item[]
  readonly hasMore: boolean
  readonly isBusy: boolean
  /** Of the last further page. */
  readonly refusal: Refusal | undefined
  more(): void
}

/** `path` has a query already. */
export function usePages<Item>(path: string): Pages<Item> {
  const first = useLoad(path, () => callApi<ListAnswer<Item>>(path))
  // Bound to the first page it follows: a fresh one starts anew.
  const [later, setLater] = useState<{ after?: ListAnswer<Item>; page: ListAnswer<Item> } | undefined>(undefined)
  const submit = useSubmit()
  const added = later?.after === first.value ? later?.page : undefined
  const cursor = added ? added.next_cursor : (first.value?.next_cursor ?? null)
  return {
    first,
    items: [...(first.value?.data ?? []), ...(added?.data ?? [])],
    hasMore: cursor !== null,
    isBusy: submit.isBusy,
    refusal: submit.refusal,
    more() {
      const after = first.value
      if (cursor === null || !after) return
      submit.run(
        () => callApi<ListAnswer<Item>>(`${path}&cursor=${encodeURIComponent(cursor)}`),
        ({ data, next_cursor }) => setLater({ after, page: { data: [...(added?.data ?? []), ...data], next_cursor } }),
      )
    },
  }
}
