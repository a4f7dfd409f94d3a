// What the command palette finds: pages, models, keys, and a request by its id.

import { modelPath } from '../../catalog/entry.ts'
import { consoleSections, sectionPath } from '../../page-data.ts'

export interface PaletteEntry {
  readonly kind: 'page' | 'model' | 'key' | 'request'
  readonly label: string
  /** Beside the label, smaller. */
  readonly note: string
  readonly href: string
}

export interface PaletteSources {
  readonly models: readonly { readonly id: string; readonly name: string }[]
  readonly keys: readonly { readonly id: string; readonly name: string; readonly last4: string }[]
}

const entriesMax = 30

const pageEntries: readonly PaletteEntry[] = [
  ...consoleSections.map(({ name, label, key }) => ({
    kind: 'page' as const,
    label,
    note: `g ${key}`,
    href: sectionPath(name),
  })),
  { kind: 'page', label: 'Models', note: 'public catalog', href: '/' },
]

/** What matches the typed text, best first; the pages where nothing is typed. */
export function paletteEntries(typed: string, { models, keys }: PaletteSources): readonly PaletteEntry[] {
  const text = typed.trim()
  if (text === '') return pageEntries
  const all: readonly PaletteEntry[] = [
    ...pageEntries,
    ...keys.map(
      ({ id, name, last4 }): PaletteEntry => ({
        kind: 'key',
        label: name,
        note: `…${last4}, its requests`,
        href: `/console/requests?key=${id}`,
      }),
    ),
    ...models.map(({ id, name }): PaletteEntry => ({ kind: 'model', label: id, note: name, href: modelPath(id) })),
  ]
  const words = text.toLowerCase().split(/\s+/)
  const found = all
    .map((entry) => ({ entry, rank: rankOf(entry, words) }))
    .filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .map(({ entry }) => entry)
  return [...requestEntry(text), ...found].slice(0, entriesMax)
}

function requestEntry(text: string): readonly PaletteEntry[] {
  if (!/^req_[0-9A-Za-z]{26}$/.test(text)) return []
  const id = `req_${text.slice('req_'.length).toUpperCase()}`
  return [{ kind: 'request', label: id, note: 'open this request', href: `/console/requests/${id}` }]
}

/** 0 = a word is missing. A label that starts with the first word ranks highest. */
function rankOf({ label, note, kind }: PaletteEntry, words: readonly string[]): number {
  const name = label.toLowerCase()
  const text = `${name} ${note.toLowerCase()} ${kind}`
  if (!words.every((word) => text.includes(word))) return 0
  const [first = ''] = words
  if (name.startsWith(first)) return 3
  return name.includes(first) ? 2 : 1
}
