// Filters of a page live in its address, so that a view can be sent to somebody, and Back works.

import { useEffect, useState } from 'preact/hooks'

export type AddressQuery<Name extends string> = Readonly<Record<Name, string>>

/** Each name with what stands in the address; empty = not there. The list of names must stay the same. */
export function useAddressQuery<Name extends string>(
  names: readonly Name[],
): readonly [AddressQuery<Name>, (change: Partial<AddressQuery<Name>>) => void] {
  const [query, setQuery] = useState<AddressQuery<Name>>(() => readQuery(names, ''))
  useEffect(() => {
    const read = () => setQuery(readQuery(names, location.search))
    read()
    addEventListener('popstate', read)
    return () => removeEventListener('popstate', read)
  }, [])
  const change = (changed: Partial<AddressQuery<Name>>) => {
    const next = { ...readQuery(names, location.search), ...changed }
    const params = new URLSearchParams(location.search)
    for (const name of names) {
      if (next[name] === '') params.delete(name)
      else params.set(name, next[name])
    }
    const text = params.toString()
    history.pushState(null, '', text === '' ? location.pathname : `${location.pathname}?${text}`)
    setQuery(next)
  }
  return [query, change]
}

function readQuery<Name extends string>(names: readonly Name[], search: string): AddressQuery<Name> {
  const params = new URLSearchParams(search)
  return Object.fromEntries(names.map((name) => [name, params.get(name) ?? ''])) as Record<Name, string>
}
