// The data of each page. It is plain JSON: the server renders with it and the browser hydrates with the same. Everyone who can
// open a page can read its data. Also the list of the console's pages.

import type { CatalogEntry, DatedPrice } from './catalog/entry.ts'
import type { CatalogQuery } from './catalog/query.ts'
import type { Sample } from './catalog/sample-cost.ts'
import type { Snippet } from './catalog/snippets.ts'

/** A page with live updates. */
interface LiveData {
  /** A hash of the catalog it was rendered from, to detect changes. */
  readonly state: string
}

export interface ListData extends LiveData {
  readonly entries: readonly CatalogEntry[]
  readonly query: CatalogQuery
  /** Of the built-in prices; absent = unknown. */
  readonly builtInDate?: string
  /** The viewer may filter by project. */
  readonly isSignedIn: boolean
}

export interface ModelData extends LiveData {
  readonly entry: CatalogEntry
  readonly sample: Sample
  readonly snippets: readonly Snippet[]
  /** Newest first. */
  readonly history: readonly DatedPrice[]
}

export interface CompareData extends LiveData {
  /** In the requested order. */
  readonly entries: readonly CatalogEntry[]
  readonly sample: Sample
}

/** A message, for example that a page does not exist. */
export interface NoticeData {
  readonly title: string
  readonly text: string
  readonly links: readonly { readonly href: string; readonly label: string }[]
}

export interface SignInData {
  /** Plain http over the network. */
  readonly isExposed: boolean
  /** A sentence that says where to find the management token. */
  readonly tokenPlace: string
}

/** The console's pages load their content from the management API. */
export interface ConsoleData extends ConsolePlace {
  readonly actor: string
  /** The gateway's address, for code to copy. */
  readonly address: string
}

/** A page of the console about one workspace. */
export interface WorkspaceData extends ConsoleData {
  readonly workspaceId: string
}

export interface PageData {
  readonly list: ListData
  readonly model: ModelData
  readonly compare: CompareData
  readonly notice: NoticeData
  readonly 'sign-in': SignInData
  readonly console: ConsoleData
}

export type PageKind = keyof PageData

/** A page, ready to be rendered. */
export type Page = {
  [Kind in PageKind]: { readonly kind: Kind; readonly title: string; readonly data: PageData[Kind] }
}[PageKind]

/** Responds with a page in its frame. */
export type ShowPage = (request: Request, page: Page, status?: number) => Promise<Response>

/** What surrounds every page. */
export interface Frame {
  readonly theme: Theme
  readonly version: string
  /** Whether the viewer has a console session. */
  readonly isSignedIn: boolean
  readonly styleUrl: string
  readonly iconUrl: string
  readonly scriptUrl: string
}

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

/** Written by the page and read by the server, so that pages load in the right theme. */
export const themeCookie = 'tollgate-theme'

export interface ConsoleSection {
  /** In the address: `/console/requests`; the first one is `/console` itself. */
  readonly name: string
  readonly label: string
  /** The shortcut, after `g`. */
  readonly key: string
}

/** In the order of the menu. */
export const consoleSections = [
  { name: 'overview', label: 'Usage', key: 'o' },
  { name: 'requests', label: 'Requests', key: 'r' },
  { name: 'playground', label: 'Playground', key: 'p' },
  { name: 'keys', label: 'API keys', key: 'k' },
  { name: 'projects', label: 'Projects & limits', key: 'j' },
  { name: 'wallet', label: 'Billing', key: 'w' },
  { name: 'providers', label: 'Providers & routes', key: 'v' },
  { name: 'settings', label: 'Settings', key: 's' },
] as const satisfies readonly ConsoleSection[]

export type SectionName = (typeof consoleSections)[number]['name']

export interface ConsolePlace {
  readonly section: SectionName
  /** What follows in the address, such as a request id; empty = nothing. */
  readonly subject: string
}

/** undefined = not a page of the console. */
export function placeOf(path: string): ConsolePlace | undefined {
  const [name = '', subject = '', ...rest] = path.split('/').slice(2)
  if (rest.length > 0) return undefined
  if (name === '') return { section: 'overview', subject: '' }
  const section = consoleSections.find((each) => each.name === name)
  return section && { section: section.name, subject }
}

export function sectionPath(name: SectionName): string {
  return name === 'overview' ? '/console' : `/console/${name}`
}
