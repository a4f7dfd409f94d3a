/** @jsxImportSource preact */
// A button that copies a text and says so for a moment.

import { useEffect, useState } from 'preact/hooks'
import { copyText } from '../browser/copy-text.ts'

const shownMs = 2_000

export interface CopyButtonProps {
  readonly text: string
  /** What is copied, for who cannot see it: `id of sandbox/echo`. */
  readonly what: string
  /** Beside the symbol; absent = the symbol alone. */
  readonly label?: string
}

export function CopyButton({ text, what, label }: CopyButtonProps) {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready')
  useEffect(() => {
    if (state === 'ready') return
    const timer = setTimeout(() => setState('ready'), shownMs)
    return () => clearTimeout(timer)
  }, [state])
  const copy = async () => setState((await copyText(text)) ? 'copied' : 'failed')
  const said = { ready: label, copied: 'copied', failed: 'select and copy by hand' }[state]
  return (
    <button
      type="button"
      class={`copy needs-script ${state}`}
      data-copy={text}
      title={`Copy the ${what}`}
      onClick={copy}
    >
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" focusable="false">
        {state === 'copied' ? <path d="m3 8.5 3.5 3.5L13 4.5" /> : <path d="M5.5 5.5h7v8h-7zM3.5 10.5v-8h7" />}
      </svg>
      {said === undefined ? (
        <span class="visually-hidden">Copy the {what}</span>
      ) : (
        <span aria-live="polite">{said}</span>
      )}
    </button>
  )
}
