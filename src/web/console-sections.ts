// The pages of the console, as the server, the menu and the keyboard know them. What a page shows stands in
// pages/console/; a page that is not listed here is not found.

export interface ConsoleSection {
  /** `/console/requests`; the first one is `/console` itself. */
  readonly name: string
  readonly label: string
  /** After `g`. */
  readonly key: string
}

export const consoleSections = [
  { name: 'overview', label: 'Overview', key: 'o' },
  { name: 'requests', label: 'Requests', key: 'r' },
  { name: 'playground', label: 'Playground', key: 'p' },
  { name: 'keys', label: 'Keys', key: 'k' },
  { name: 'projects', label: 'Projects & limits', key: 'j' },
  { name: 'wallet', label: 'Wallet', key: 'w' },
  { name: 'providers', label: 'Providers & routes', key: 'v' },
  { name: 'settings', label: 'Settings', key: 's' },
] as const satisfies readonly ConsoleSection[]

export type SectionName = (typeof consoleSections)[number]['name']

export interface ConsolePlace {
  readonly section: SectionName
  /** What stands behind the section in the address, such as a request's id; empty = nothing. */
  readonly subject: string
}

/** undefined = no page of the console. */
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
