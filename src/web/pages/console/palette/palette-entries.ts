// What the palette can jump to: pages, models, keys, and a request by its id. Pure: what was typed goes in, a short list
// comes out, best first.

import { modelPath } from '../../../catalog/entry.ts'
import { consoleSections, sectionPath } from '../../../console-sections.ts'

export interface PaletteEntry {
  readonly kind: 'page' | 'model' | 'key' | 'request'
  readonly label: string
  /** Beside the label, smaller. */
  readonly note: string
  readonly href: string
}

export interface PaletteThings {
  readonly models: readonly { readonly id: string; readonly name: string }[]
  readonly keys: readonly { readonly id: string; readonly name: string; readonly last4: string }[]
}

const shownMax = 30

const pages: readonly PaletteEntry[] = [
  ...consoleSections.map(({ name, label, key }) => ({
    kind: 'page' as const,
    label,
    note: `g ${key}`,
    href: sectionPath(name),
  })),
  { kind: 'page', label: 'Catalog', note: 'public', href: '/' },
]

/** Without a word only the pages: everything would be nothing in particular. */
export function paletteEntries(typed: string, { models, keys }: PaletteThings): readonly PaletteEntry[] {
  const text = typed.trim()
  if (text === '') return pages
  const id = /^req_[0-9A-Za-z]{26}$/.test(text) ? `req_${text.slice('req_'.length).toUpperCase()}` : undefined
  const request: readonly PaletteEntry[] =
    id === undefined
      ? []
      : [{ kind: 'request', label: id, note: 'explain this request', href: `/console/requests/${id}` }]
  const all: readonly PaletteEntry[] = [
    ...pages,
    ...keys.map(
      ({ id: keyId, name, last4 }): PaletteEntry => ({
        kind: 'key',
        label: name,
        note: `…${last4}, its requests`,
        href: `/console/requests?key=${keyId}`,
      }),
    ),
    ...models.map(({ id: modelId, name }): PaletteEntry => {
      return { kind: 'model', label: modelId, note: name, href: modelPath(modelId) }
    }),
  ]
  const words = text.toLowerCase().split(/\s+/)
  const found = all
    .map((entry) => ({ entry, rank: rankOf(entry, words) }))
    .filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .map(({ entry }) => entry)
  return [...request, ...found].slice(0, shownMax)
}

/** 0 = some word is nowhere in it. The beginning of the label counts most. */
function rankOf({ label, note, kind }: PaletteEntry, words: readonly string[]): number {
  const name = label.toLowerCase()
  const text = `${name} ${note.toLowerCase()} ${kind}`
  if (!words.every((word) => text.includes(word))) return 0
  const [first = ''] = words
  if (name.startsWith(first)) return 3
  return name.includes(first) ? 2 : 1
}
