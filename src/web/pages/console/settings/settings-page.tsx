/** @jsxImportSource preact */
// What holds for the whole gateway: its workspaces, its configuration, who is signed in, and who changed what.

import type { ConsoleData } from '../../../page-data.ts'
import { AuditLog } from './audit-log.tsx'
import { ConfigurationCard } from './configuration-card.tsx'
import { SessionCard } from './session-card.tsx'
import { WorkspacesCard } from './workspaces-card.tsx'

export function SettingsPage({ address, actor }: ConsoleData) {
  return (
    <>
      <header class="manage-head">
        <h1>Settings & audit</h1>
        <p class="lede">What holds for the whole gateway, and who changed what.</p>
      </header>
      <div class="card-columns">
        <WorkspacesCard />
        <SessionCard actor={actor} />
      </div>
      <ConfigurationCard address={address} />
      <AuditLog />
    </>
  )
}
