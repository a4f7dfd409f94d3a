/** @jsxImportSource preact */
// What has to be known of a model before anything else: that it is pretended, free, without a price, or about to go.

import { type CatalogEntry, isRehearsal } from '../../catalog/entry.ts'
import { isPrivate } from '../../catalog/seen-entries.ts'

export function Badges({ entry }: { readonly entry: CatalogEntry }) {
  return (
    <>
      {isRehearsal(entry) && (
        <span class="badge" title="Answers from inside the gateway; no provider is called">
          sandbox
        </span>
      )}
      {entry.price === 'free' && <span class="badge">free</span>}
      {entry.own_key && (
        <span class="badge" title="Served with a credential of the workspace’s own">
          own key
        </span>
      )}
      {entry.price === null && !isPrivate(entry) && <span class="badge alarm">no price (not callable)</span>}
      {entry.retires && <span class="badge alarm">retires {entry.retires}</span>}
    </>
  )
}

export function Tags({ tags }: { readonly tags: readonly string[] }) {
  if (tags.length === 0) return <span class="muted">–</span>
  return (
    <ul class="tags" aria-label="Can">
      {tags.map((tag) => (
        <li key={tag}>{tag}</li>
      ))}
    </ul>
  )
}
