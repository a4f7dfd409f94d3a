// What the command palette finds: pages, actions, workspaces, projects, models, keys, providers, people, documentation, and
// a request by its id.

import { modelPath } from '../../catalog/entry.ts'
import { consoleSections, type DocsLink, isListed, sectionPath, type Viewer } from '../../page-data.ts'

export interface PaletteEntry {
  readonly kind:
    | 'page'
    | 'action'
    | 'workspace'
    | 'project'
    | 'model'
    | 'key'
    | 'provider'
    | 'person'
    | 'docs'
    | 'request'
  readonly label: string
  /** Beside the label, smaller. */
  readonly note?: string
  /** Either leads somewhere or does something. */
  readonly href?: string
  run?(): void
}

interface Named {
  readonly id: string
  readonly name: string
}

export interface PaletteSources {
  readonly viewer: Viewer
  readonly scope: string
  readonly actions: readonly PaletteEntry[]
  readonly models: readonly Named[]
  readonly keys: readonly (Named & { readonly last4: string })[]
  readonly projects: readonly Named[]
  readonly workspaces: readonly Named[]
  /** Ids. */
  readonly providers: readonly string[]
  readonly people: readonly { readonly name: string; readonly email: string; readonly role: string }[]
  /** Each with the title of its group. */
  readonly docs: readonly (DocsLink & { readonly group: string })[]
}

const entriesMax = 30

function pagesFor({ viewer, scope }: PaletteSources): readonly PaletteEntry[] {
  return [
    ...consoleSections
      .filter(({ name }) => isListed(name, viewer))
      .map(({ name, label, key }) => entry('page', label, sectionPath(name, scope), `g ${key}`)),
    entry('page', 'Models', '/', 'public catalog'),
    entry('page', 'Documentation', '/docs', 'guides and reference'),
  ]
}

function entry(kind: PaletteEntry['kind'], label: string, href: string, note?: string): PaletteEntry {
  return { kind, label, href, ...(note !== undefined && { note }) }
}

/** What matches the typed text, best first; pages and actions where nothing is typed. */
export function paletteEntries(typed: string, sources: PaletteSources): readonly PaletteEntry[] {
  const text = typed.trim()
  const { scope, actions, models, keys, projects, workspaces, providers, people, docs } = sources
  const first = [...pagesFor(sources), ...actions]
  const requests = sectionPath('requests', scope)
  if (text === '') return first
  const all: readonly PaletteEntry[] = [
    ...first,
    ...workspaces.map(({ id, name }) => entry('workspace', name, sectionPath('usage', id), 'switch to it')),
    ...projects.map(({ name }) => entry('project', name, sectionPath('projects', scope))),
    ...keys.map(({ id, name, last4 }) => entry('key', name, `${requests}?key=${id}`, `…${last4}, its requests`)),
    ...providers.map((id) => entry('provider', id, `${sectionPath('providers', scope)}/${id}`)),
    ...people.map(({ name, email, role }) =>
      entry('person', name || email, sectionPath('people', scope), `${email}, ${role}`),
    ),
    ...models.map(({ id, name }) => entry('model', id, modelPath(id), name)),
    ...docs.map(({ href, label, group }) => entry('docs', label, href, group)),
  ]
  const words = text.toLowerCase().split(/\s+/)
  const found = all
    .map((entry) => ({ entry, rank: rankOf(entry, words) }))
    .filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .map(({ entry }) => entry)
  return [...requestEntry(text, requests), ...found].slice(0, entriesMax)
}

function requestEntry(text: string, requests: string): readonly PaletteEntry[] {
  if (!/^req_[0-9A-Za-z]{26}$/.test(text)) return []
  const id = `req_${text.slice('req_'.length).toUpperCase()}`
  return [entry('request', id, `${requests}/${id}`, 'open this request')]
}

/**
 * 0 = a word is missing. Every word counts, more where it starts a word of the label than in the middle of one:
 * `claude op` finds Opus before a model whose name only contains those letters.
 */
function rankOf({ label, note = '', kind }: PaletteEntry, words: readonly string[]): number {
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
