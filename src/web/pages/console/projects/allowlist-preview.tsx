/** @jsxImportSource preact */
// The list of models that an allowlist comes to, exactly as /v1/models would show it to the project's keys.

import type { CatalogEntry } from '../../../catalog/entry.ts'
import { allowedEntries } from './allowed-entries.ts'

export interface AllowlistPreviewProps {
  readonly entries: readonly CatalogEntry[]
  /** null = every model. */
  readonly models: readonly string[] | null
  /** Whether all that own keys open is among the entries. */
  readonly isWhole: boolean
}

export function AllowlistPreview({ entries, models, isWhole }: AllowlistPreviewProps) {
  const callable = entries.filter((entry) => entry.callable)
  const allowed = allowedEntries(models, callable)
  return (
    <section class="preview" aria-label="What its keys may call">
      <p role="status">
        Its keys will see <strong>{allowed.length}</strong> of {callable.length} models
        {models === null && ', and those that are added later'}
        {allowed.length === 0 && isWhole && ': every call will be refused'}.
      </p>
      {!isWhole && (
        <p class="hint">Of the models that own keys open, only those are counted that some project may call now.</p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must be able to */}
      <ul class="model-ids" tabIndex={0} aria-label="Models its keys will see">
        {allowed.map(({ id }) => (
          <li key={id}>
            <code>{id}</code>
          </li>
        ))}
      </ul>
    </section>
  )
}
