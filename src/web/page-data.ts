// What each page is made from: plain JSON, since the server renders a page with it and the browser takes the page over
// with the same. Anything in here is readable by whoever may open the page.

import type { CatalogEntry, DatedPrice } from './catalog/entry.ts'
import type { CatalogQuery } from './catalog/query.ts'
import type { Sample } from './catalog/shown-price.ts'
import type { Snippet } from './catalog/snippets.ts'
import type { ConsolePlace } from './console-sections.ts'

/** A page that follows the catalog. */
interface LiveData {
  /** Names what it was made from, so that a later change can be told from none. */
  readonly state: string
}

export interface ListData extends LiveData {
  readonly entries: readonly CatalogEntry[]
  readonly query: CatalogQuery
  /** Of the built-in prices; absent = not known. */
  readonly builtInDate?: string
  /** The viewer may ask what a project can use. */
  readonly isSignedIn: boolean
}

export interface ModelData extends LiveData {
  readonly entry: CatalogEntry
  readonly sample: Sample
  readonly snippets: readonly Snippet[]
  /** Every price that was in force, newest first. */
  readonly history: readonly DatedPrice[]
}

export interface CompareData extends LiveData {
  /** In the order they were asked for. */
  readonly entries: readonly CatalogEntry[]
  readonly sample: Sample
}

/** A page of words, such as that something was not found. */
export interface NoticeData {
  readonly title: string
  readonly text: string
  readonly links: readonly { readonly href: string; readonly label: string }[]
}

export interface SignInData {
  /** The connection is not encrypted and leaves this machine. */
  readonly isExposed: boolean
  /** For messages: where the management token is. */
  readonly tokenPlace: string
}

/** What the pages of the console show they ask the management API for. */
export interface ConsoleData extends ConsolePlace {
  readonly actor: string
  /** How this gateway is reached, for code that people copy. */
  readonly address: string
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

/** One page, ready to be rendered. */
export type Page = {
  [Kind in PageKind]: { readonly kind: Kind; readonly title: string; readonly data: PageData[Kind] }
}[PageKind]

/** Answers with a page in its frame. */
export type Show = (request: Request, page: Page, status?: number) => Promise<Response>

/** What stands around every page. */
export interface Frame {
  readonly theme: Theme
  readonly version: string
  /** Whether the viewer has a session of the console. */
  readonly isSignedIn: boolean
  readonly styleUrl: string
  readonly iconUrl: string
  readonly scriptUrl: string
}

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

/** Not a secret: the page writes it, the server reads it, so that no page flashes in the wrong colours. */
export const themeCookie = 'tollgate-theme'
