// The data of each page. It is plain JSON: the server renders with it and the browser hydrates with the same. Everyone who can
// open a page can read its data. Also the list of the console's pages.

import { isAllowed, type OperationName } from '../api/endpoints.ts'
import type { WorkspaceRole } from '../kernel/roles.ts'
import type { CatalogEntry, DatedPrice, RouteCost, RouteDay } from './catalog/entry.ts'
import type { CatalogQuery, ListView } from './catalog/query.ts'
import type { Sample } from './catalog/sample-cost.ts'
import type { Snippet } from './catalog/snippets.ts'

export interface ViewedProject {
  readonly id: string
  readonly name: string
  /** The name of its workspace. */
  readonly workspace: string
}

/** Whose models and prices a page of the catalog shows. */
export interface CatalogViewer {
  readonly isSignedIn: boolean
  /** Whether they may create keys and use the playground, or could after signing in. */
  readonly mayCall: boolean
  /** Absent = the public catalog. */
  readonly project?: ViewedProject
  /** The projects to choose from. Absent for visitors, and for operators, who may choose any and the public catalog. */
  readonly projects?: readonly ViewedProject[]
}

/** The id of the project whose models and prices the catalog shows. Written by the page. */
export const viewedProjectCookie = 'tollgate-project'

/** A page with live updates. */
interface LiveData {
  readonly viewer: CatalogViewer
  /** A hash of the catalog it was rendered from, to detect changes. */
  readonly state: string
}

/** One page of the list. The browser loads the whole catalog later, to filter without the server. */
export interface ListData extends LiveData {
  readonly view: ListView
  readonly query: CatalogQuery
  /** Ids of the models with the most requests here, first the most used. */
  readonly used: readonly string[]
  /** How many models from how many providers. */
  readonly summary: string
  /** `YYYY-MM-DD` in UTC. */
  readonly today: string
}

export interface ModelData extends LiveData {
  readonly entry: CatalogEntry
  /** The viewer's project may not call it, so the page shows the public price. */
  readonly isOutside: boolean
  readonly sample: Sample
  readonly snippets: readonly Snippet[]
  /** `YYYY-MM-DD` in UTC. */
  readonly today: string
  /** Newest first. */
  readonly history: readonly DatedPrice[]
  /** The days of the routes that had attempts. */
  readonly days: readonly RouteDay[]
  /** Absent unless the viewer is an operator. */
  readonly costs?: readonly RouteCost[]
}

export interface CompareData extends LiveData {
  /** In the requested order. */
  readonly entries: readonly CatalogEntry[]
  readonly sample: Sample
  /** `YYYY-MM-DD` in UTC. */
  readonly today: string
}

export interface DocsLink {
  readonly href: string
  readonly label: string
}

/** A heading of a page. */
export interface DocsContent {
  readonly id: string
  readonly label: string
  /** Below the one before it. */
  readonly isSub: boolean
}

/** A page of the documentation. */
export interface DocsData {
  readonly title: string
  /** Made from the repository's own texts; empty where results of a search are shown. */
  readonly html: string
  readonly search?: DocsSearch
  readonly isHome?: boolean
  /** Empty = too few to be listed. */
  readonly contents: readonly DocsContent[]
  /** Its address. */
  readonly path: string
  readonly groups: readonly { readonly title: string; readonly links: readonly DocsLink[] }[]
}

export interface DocsSearch {
  readonly query: string
  /** Only the best of them are in the results. */
  readonly found: number
  readonly results: readonly {
    readonly href: string
    /** Title of its page. */
    readonly page: string
    readonly heading: string
    /** Every second piece is a match. */
    readonly excerpt: readonly string[]
  }[]
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
  /** False: there are no accounts yet, so only the management token signs in. */
  readonly hasAccounts: boolean
  /** Whether anyone may create an account. */
  readonly isOpen: boolean
  /** The page to go to after the sign-in. */
  readonly returnTo: string
  /** Name of the identity provider; absent = none is configured. */
  readonly providerName?: string
  /** Why signing in with the identity provider failed. */
  readonly problem?: string
  /** The invitation or reset link in the address. */
  readonly link?: LinkData
}

/** `spent`: it was used or withdrawn, or has expired. `account`: what the address has. `as`: `member of acme`. */
export type LinkData =
  | {
      readonly kind: 'invitation' | 'reset'
      readonly email: string
      readonly account: 'none' | 'with password' | 'without password'
      readonly as?: string
    }
  | { readonly kind: 'spent' }

/** Who looks at the console, and what they may do. */
export interface Viewer {
  /** Their address, or `console session` for the installation. */
  readonly actor: string
  readonly isPerson: boolean
  readonly isOperator: boolean
  /** An operator who looks at the console as someone else does. */
  readonly isViewingAs: boolean
  /** Empty for operators. */
  readonly grants: readonly { readonly workspaceId: string; readonly role: WorkspaceRole }[]
  /** Whether batches are switched on. */
  readonly hasBatches: boolean
}

/** A console page. It loads its content from the management API; the first answers come with the document. */
export interface ConsoleData extends ConsolePlace, Viewer {
  /** Answers of the management API by path, which the page would load first. */
  readonly answers: Readonly<Record<string, unknown>>
  /** Epoch milliseconds at which they were read. Periods that end now are part of the paths. */
  readonly now: number
  /** The gateway's address, for code to copy. */
  readonly address: string
}

/** The page on which a person lets a device sign in as them. */
export interface DeviceData extends Viewer {
  /** From the address, to fill in the form; empty = it has to be typed. */
  readonly code: string
}

/** Where codes of devices are entered: `verification_uri` leads here. */
export const devicePath = '/console/device'

/** A page of the console about one workspace. */
export interface WorkspaceData extends ConsoleData {
  readonly workspaceId: string
}

/** A page of the console about one workspace, or for operators about all. */
export interface WorkspacesData extends ConsoleData {
  /** undefined = all. */
  readonly workspaceId: string | undefined
}

export interface PageData {
  readonly list: ListData
  readonly model: ModelData
  readonly compare: CompareData
  readonly docs: DocsData
  readonly notice: NoticeData
  readonly 'sign-in': SignInData
  readonly device: DeviceData
  readonly console: ConsoleData
}

export type PageKind = keyof PageData

/** Pages whose script is the console's, and whose content is not kept by caches. */
export function isConsoleKind(kind: PageKind): boolean {
  return kind === 'console' || kind === 'sign-in' || kind === 'device'
}

/** A page, ready to be rendered. */
export type Page = {
  [Kind in PageKind]: { readonly kind: Kind; readonly title: string; readonly data: PageData[Kind] }
}[PageKind]

/** The data around every page. */
export interface Frame {
  readonly theme: Theme
  readonly version: string
  /** Whether the viewer has a console session. */
  readonly isSignedIn: boolean
  readonly styleUrl: string
  readonly iconUrl: string
  /** Loaded before the first paint. */
  readonly fontUrls: readonly string[]
  readonly scriptUrl: string
  /** URL of the chart library, which the usage page loads. Absent outside the console. */
  readonly chartUrl?: string
}

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

/** Written by the page and read by the server, so that pages load in the right theme. */
export const themeCookie = 'tollgate-theme'

export interface ConsoleSection {
  /** In the address: `/console/ws_…/requests`. */
  readonly name: string
  readonly label: string
  readonly icon: string
  /** The shortcut, after `g`. */
  readonly key: string
  /** Shown to those who may call it. */
  readonly needs: OperationName
}

/** In the order of the menu. */
export const consoleSections = [
  { name: 'usage', label: 'Usage', icon: 'usage', key: 'o', needs: 'getStats' },
  { name: 'requests', label: 'Requests', icon: 'requests', key: 'r', needs: 'listRequests' },
  { name: 'batches', label: 'Batches', icon: 'batches', key: 'h', needs: 'listBatches' },
  { name: 'playground', label: 'Playground', icon: 'playground', key: 'p', needs: 'createKey' },
  { name: 'keys', label: 'API keys', icon: 'key', key: 'k', needs: 'listKeys' },
  { name: 'projects', label: 'Projects & limits', icon: 'projects', key: 'j', needs: 'listProjects' },
  { name: 'wallet', label: 'Billing', icon: 'billing', key: 'w', needs: 'getWallet' },
  { name: 'alerts', label: 'Alerts', icon: 'bell', key: 't', needs: 'listAlerts' },
  { name: 'people', label: 'People', icon: 'people', key: 'e', needs: 'listMembers' },
  { name: 'providers', label: 'Providers & routes', icon: 'providers', key: 'v', needs: 'listCredentials' },
  { name: 'margin', label: 'Prices & margin', icon: 'margin', key: 'm', needs: 'getMargin' },
  { name: 'bills', label: 'Provider bills', icon: 'bills', key: 'b', needs: 'getReconciliation' },
  { name: 'audit', label: 'Audit log', icon: 'audit', key: 'l', needs: 'listAudit' },
  { name: 'settings', label: 'Settings', icon: 'settings', key: 's', needs: 'getConfig' },
  { name: 'account', label: 'Account', icon: 'account', key: 'a', needs: 'getMe' },
] as const satisfies readonly ConsoleSection[]

export type SectionName = (typeof consoleSections)[number]['name']

/** Whether the viewer may call the operation, in the given workspace or in any of theirs. */
export function may(viewer: Viewer, name: OperationName, workspaceId?: string): boolean {
  if (viewer.isOperator) return true
  const grants = viewer.grants.filter((grant) => workspaceId === undefined || grant.workspaceId === workspaceId)
  return grants.some(({ role }) => isAllowed(name, role))
}

/** The installation has no account. */
export function isVisible(name: SectionName, viewer: Viewer): boolean {
  if (name === 'account') return viewer.isPerson && !viewer.isViewingAs
  const section = consoleSections.find((each) => each.name === name)
  return section !== undefined && may(viewer, section.needs)
}

/** In the menu. The page of batches stays at its address when they are switched off, for links to those that exist. */
export function isListed(name: SectionName, viewer: Viewer): boolean {
  return isVisible(name, viewer) && (name !== 'batches' || viewer.hasBatches)
}

export interface ConsolePlace {
  /** The workspace in the address, `all`, or empty where the address has none: then the last one is chosen. */
  readonly scope: string
  readonly section: SectionName
  /** The rest of the address, such as a request id; empty = none. */
  readonly subject: string
}

export const allWorkspaces = 'all'

/** The last workspace, so that an address without one leads there. Written by the page. */
export const workspaceCookie = 'tollgate-workspace'

const isScope = (segment: string) => segment === allWorkspaces || /^ws_[0-9A-Z]{26}$/.test(segment)

/** undefined = not a page of the console. */
export function placeOf(path: string): ConsolePlace | undefined {
  const [, base, first = '', ...more] = path.split('/')
  if (base !== 'console') return undefined
  const scope = isScope(first) ? first : ''
  const [name = '', subject = '', ...rest] = scope === '' ? [first, ...more] : more
  if (rest.length > 0) return undefined
  const section = consoleSections.find((each) => each.name === (name === '' ? 'usage' : name))
  return section && { scope, section: section.name, subject }
}

/** `/console/ws_…/requests` */
export function sectionPath(name: SectionName, scope: string): string {
  return `/console${scope === '' ? '' : `/${scope}`}/${name}`
}

/** Adds the workspace to an address of the console that has none. */
export function scopedPath(path: string, scope: string): string {
  const place = placeOf(path)
  if (place?.scope !== '') return path
  return sectionPath(place.section, scope) + (place.subject === '' ? '' : `/${place.subject}`)
}

/** `Requests`, or the id of one of them. */
export function titleOf({ section, subject }: ConsolePlace): string {
  if (subject !== '') return subject
  return consoleSections.find(({ name }) => name === section)?.label ?? 'Console'
}

/** The meta element with the address of the chart library. */
export const chartScriptName = 'chart-script'
