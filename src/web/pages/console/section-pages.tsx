/** @jsxImportSource preact */
// Which component shows which page of the console: one line for each. The menu shows the pages that stand here.

import type { ComponentType } from 'preact'
import type { SectionName } from '../../console-sections.ts'
import type { ConsoleData } from '../../page-data.ts'
import { KeysPage } from './keys/keys-page.tsx'
import { OverviewPage } from './overview/overview-page.tsx'
import { PlaygroundPage } from './playground/playground-page.tsx'
import { ProjectsPage } from './projects/projects-page.tsx'
import { ProvidersPage } from './providers/providers-page.tsx'
import { RequestsSection } from './requests/requests-section.tsx'
import { SettingsPage } from './settings/settings-page.tsx'
import { WalletPage } from './wallet/wallet-page.tsx'

export const sectionPages: { readonly [Name in SectionName]?: ComponentType<ConsoleData> } = {
  overview: OverviewPage,
  requests: RequestsSection,
  playground: PlaygroundPage,
  keys: KeysPage,
  projects: ProjectsPage,
  wallet: WalletPage,
  providers: ProvidersPage,
  settings: SettingsPage,
}
