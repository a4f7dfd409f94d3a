/** @jsxImportSource preact */
// Code that calls the model, a tab for each client. Without scripts all of them stand one after the other.

import { useState } from 'preact/hooks'
import type { Snippet } from '../../catalog/snippets.ts'
import { CopyButton } from '../shell/copy-button.tsx'

export function CodeTabs({ snippets }: { readonly snippets: readonly Snippet[] }) {
  const [open, setOpen] = useState(0)
  const move = (to: number) => {
    const next = (to + snippets.length) % snippets.length
    setOpen(next)
    document.getElementById(`tab-${next}`)?.focus()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const to = { ArrowRight: open + 1, ArrowLeft: open - 1, Home: 0, End: snippets.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    move(to)
  }
  return (
    <div class="code">
      <div class="tabs needs-script" role="tablist" aria-label="Clients">
        {snippets.map(({ client }, index) => (
          <button
            key={client}
            type="button"
            role="tab"
            id={`tab-${index}`}
            aria-selected={index === open}
            aria-controls={`panel-${index}`}
            tabIndex={index === open ? 0 : -1}
            onClick={() => setOpen(index)}
            onKeyDown={onKeyDown}
          >
            {client}
          </button>
        ))}
      </div>
      {snippets.map((snippet, index) => (
        <div
          key={snippet.client}
          class="panel"
          role="tabpanel"
          id={`panel-${index}`}
          aria-labelledby={`tab-${index}`}
          hidden={index !== open}
        >
          <h3 class="without-script">{snippet.client}</h3>
          {snippet.install !== '' && (
            <p class="install">
              <code>{snippet.install}</code>
              <CopyButton text={snippet.install} what="command that installs it" />
            </p>
          )}
          <div class="code-block">
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must be able to */}
            <pre tabIndex={0}>
              <code>{snippet.code}</code>
            </pre>
            <CopyButton text={snippet.code} what={`code for ${snippet.client}`} label="Copy" />
          </div>
          <p class="hint">
            Set <code>TOLLGATE_KEY</code> to a key of yours. Tools, images, errors and more:{' '}
            <code>docs/recipes/{snippet.recipe}</code>
          </p>
        </div>
      ))}
    </div>
  )
}
