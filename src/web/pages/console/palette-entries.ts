// What the command palette finds: pages, actions, workspaces, projects, models, keys, and a request by its id.

import { modelPath } from '../../catalog/entry.ts'
import { consoleSections, isVisible, sectionPath, type Viewer } from '../../page-data.ts'

export interface PaletteEntry {
  readonly kind: 'page' | 'action' | 'workspace' | 'project' | 'model' | 'key' | 'request'
  readonly label: string
  /** Beside the label, smaller. */
  readonly note: string
  /** Where it leads; empty = it only runs. */
  readonly href: string
  run?(): void
}

interface Named {
  readonly id: string
  readonly name: string
}

export interface PaletteSources {
  /** undefined = not signed in, or outside of the console. */
  readonly viewer: Viewer | undefined
  readonly scope: string
  readonly actions: readonly PaletteEntry[]
  readonly models: readonly Named[]
  readonly keys: readonly (Named & { readonly last4: string })[]
  readonly projects: readonly Named[]
  readonly workspaces: readonly Named[]
}

const entriesMax = 30

function pagesFor({ viewer, scope }: PaletteSources): readonly PaletteEntry[] {
  const sections = viewer ? consoleSections.filter(({ name }) => isVisible(name, viewer)) : []
  return [
    ...sections.map(({ name, label, key }) => ({
      kind: 'page' as const,
      label,
      note: `g ${key}`,
      href: sectionPath(name, scope),
    })),
    { kind: 'page', label: 'Models', note: 'public catalog', href: '/' },
    { kind: 'page', label: 'Documentation', note: 'guides and reference', href: '/docs' },
    { kind: 'page', label: 'API reference', note: 'management API', href: '/docs/api' },
    ...(viewer ? [] : [{ kind: 'page' as const, label: 'Console', note: 'usage, keys, billing', href: '/console' }]),
  ]
}

/** What matches the typed text, best first; pages and actions where nothing is typed. */
export function paletteEntries(typed: string, sources: PaletteSources): readonly PaletteEntry[] {
  const text = typed.trim()
  const { scope, actions, models, keys, projects, workspaces } = sources
  const first = [...pagesFor(sources), ...actions]
  if (text === '') return first
  const all: readonly PaletteEntry[] = [
    ...first,
    ...workspaces.map(
      ({ id, name }): PaletteEntry => ({
        kind: 'workspace',
        label: name,
        note: 'switch to it',
        href: sectionPath('usage', id),
      }),
    ),
    ...projects.map(
      ({ name }): PaletteEntry => ({ kind: 'project', label: name, note: '', href: sectionPath('projects', scope) }),
    ),
    ...keys.map(
      ({ id, name, last4 }): PaletteEntry => ({
        kind: 'key',
        label: name,
        note: `…${last4}, its requests`,
        href: `${sectionPath('requests', scope)}?key=${id}`,
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
  return [...requestEntry(text, scope), ...found].slice(0, entriesMax)
}

function requestEntry(text: string, scope: string): readonly PaletteEntry[] {
  if (!/^req_[0-9A-Za-z]{26}$/.test(text)) return []
  const id = `req_${text.slice('req_'.length).toUpperCase()}`
  return [{ kind: 'request', label: id, note: 'open this request', href: `${sectionPath('requests', scope)}/${id}` }]
}

/**
 * 0 = a word is missing. Every word counts, more where it starts a word of the label than in the middle of one:
 * `claude op` finds Opus before a model whose name only contains those letters.
 */
function rankOf({ label, note, kind }: PaletteEntry, words: readonly string[]): number {
  const name = label.toLowerCase()
  const parts = name.split(/[^\p{L}\p{N}]+/u)
  const more = `${note.toLowerCase()} ${kind}`
  let rank = 0
  for (const word of words) {
    if (parts.includes(word)) rank += 5
    else if (name.startsWith(word) || parts.some((part) => part.startsWith(word))) rank += 4
    else if (name.includes(word)) rank += 2
    else if (more.includes(word)) rank += 1
    else return 0
  }
  return rank
}
