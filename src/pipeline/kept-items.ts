// Output items of the last hour, for clients of Responses that refer to them by id. That API stores by default, so such a
// client sends references (`item_reference`) instead of items, as the AI SDK does unless it is told `store: false`. Kept like
// reasoning, in the same place and bounds: sealed, per workspace and session.

import type { SentRequest } from '../dialects/canonical/translation.ts'
import type { ResponseStorage } from '../dialects/dialect.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import { type KeptReasoning, keptBytesMax } from './kept-reasoning.ts'
import { readNamedSession } from './session.ts'

/** The items that one session can reach. */
export interface SessionItems {
  readonly store: KeptReasoning
  readonly workspaceId: string
  /** As its client names it, or else the caller's first message: agents change tools and instructions between two steps. */
  readonly session: string
}

export function readItemSession(
  headers: RequestHeaders,
  sent: Pick<SentRequest, 'members'>,
  storage: ResponseStorage,
): SessionItems['session'] {
  return readNamedSession(headers, sent) ?? storage.opening(sent)
}

/** `items`: as JSON, by id. */
export async function keepItems(items: SessionItems, output: ReadonlyMap<string, string>): Promise<void> {
  for (const [id, item] of output) {
    const earlier = await findItems(items, id)
    if (earlier.includes(item)) continue
    const text = JSON.stringify([...earlier, item])
    if (text.length <= keptBytesMax) items.store.keep(keyOf(items, id), text)
  }
}

/** Usually one. A host that repeats its ids has given this one to several; the oldest is first. */
export async function findItems(items: SessionItems, id: string): Promise<string[]> {
  const text = await items.store.find(keyOf(items, id))
  return text === undefined ? [] : (JSON.parse(text) as string[])
}

function keyOf({ workspaceId, session }: SessionItems, id: string): string {
  return new Bun.CryptoHasher('sha256').update(JSON.stringify([workspaceId, session, 'item', id])).digest('base64url')
}
