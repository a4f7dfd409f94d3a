/** @jsxImportSource preact */
// The settings in force and where each came from. They come from the environment and the file, and are
// changed there.

import { CopiedText } from '../manage/copied-text.tsx'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Loading, Refused } from '../parts/resource-view.tsx'
import { type ListAnswer, useResource } from '../parts/use-resource.ts'

interface Setting {
  readonly name: string
  readonly value: string
  readonly source: string
}

export function ConfigurationCard({ address }: { readonly address: string }) {
  const { value, refusal, again } = useResource<ListAnswer<Setting>>('/api/config')
  const chosen = value?.data.filter(({ source }) => source !== 'default') ?? []
  const usual = value?.data.filter(({ source }) => source === 'default') ?? []
  return (
    <section class="card" aria-label="Configuration">
      <h2>Configuration in force</h2>
      <p>
        This gateway is reached at <code class="wrap">{address}</code>. A setting comes from the environment or from{' '}
        <code>tollgate.yaml</code>, and is changed there; otherwise its default holds. Of secrets it is only said that
        they are set.
      </p>
      {refusal && <Refused refusal={refusal} again={again} />}
      {!value && !refusal && <Loading what="the settings" />}
      {chosen.length > 0 && <SettingsTable caption="Settings that somebody chose" settings={chosen} />}
      {usual.length > 0 && (
        <details>
          <summary>{usual.length} settings at their default</summary>
          <SettingsTable caption="Settings at their default" settings={usual} />
        </details>
      )}
      <CopiedText
        title="Workspaces, projects, keys and limits as a file"
        what="command that exports"
        text="npx tollgate config export"
      />
    </section>
  )
}

function SettingsTable({ caption, settings }: { readonly caption: string; readonly settings: readonly Setting[] }) {
  return <DataTable caption={caption} columns={columns} rows={settings} keyOf={({ name }) => name} />
}

const columns: readonly Column<Setting>[] = [
  { label: 'Setting', show: ({ name }) => <code class="wrap">{name}</code> },
  { label: 'Value', show: ({ value }) => <span class="wrap">{value}</span> },
  { label: 'From', show: ({ source }) => <span class="wrap">{source}</span> },
]
