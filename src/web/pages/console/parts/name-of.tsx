/** @jsxImportSource preact */
// What a key or a project is called, for people. Until that is known, and where it cannot be, its id.

import { useResource } from './use-resource.ts'

export function NameOf({ kind, id }: { readonly kind: 'keys' | 'projects'; readonly id: string }) {
  const { value } = useResource<{ readonly name: string }>(`/api/${kind}/${encodeURIComponent(id)}`)
  return value === undefined ? <code>{id}</code> : <span title={id}>{value.name}</span>
}
