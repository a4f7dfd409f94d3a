/** @jsxImportSource preact */
// What holds for the whole gateway: its workspaces, its configuration, who is signed in, and who changed what.

import type { ConsoleData } from '../../../page-data.ts'
import { CopiedText } from '../manage/copied-text.tsx'
import { AuditLog } from './audit-log.tsx'
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
        <Configuration address={address} />
        <SessionCard actor={actor} />
      </div>
      <AuditLog />
    </>
  )
}

/** Settings come from flags, variables and the file, not from here; the command names the source of each. */
function Configuration({ address }: { readonly address: string }) {
  return (
    <section class="card" aria-label="Configuration">
      <h2>Configuration in force</h2>
      <p>
        This gateway is reached at <code class="wrap">{address}</code>. Settings come from flags, variables and
        <code> tollgate.yaml</code>, not from here.
      </p>
      <CopiedText title="Settings in force" what="command that shows the settings" text="npx tollgate config show" />
      <CopiedText
        title="Workspaces, projects, keys and limits as a file"
        what="command that exports"
        text="npx tollgate config export"
      />
    </section>
  )
}
