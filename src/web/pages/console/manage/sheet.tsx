/** @jsxImportSource preact */
// A dialog over the page. It takes the focus when it opens and gives it back to what had it when it closes.

import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

export interface SheetProps {
  readonly title: string
  readonly children: ComponentChildren
  /** Esc must not close it, since what it shows is shown only once. */
  readonly isSticky?: boolean
  onClose(): void
}

export function Sheet({ title, children, isSticky = false, onClose }: SheetProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const before = document.activeElement
    const opened = dialog.current
    opened?.showModal()
    // Otherwise the button that closes it would have the focus.
    opened?.querySelector<HTMLElement>('input, select, textarea')?.focus()
    return () => {
      opened?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  const cancel = (event: Event) => {
    event.preventDefault()
    if (!isSticky) onClose()
  }
  return (
    <dialog class="sheet" ref={dialog} aria-labelledby={titleId} onCancel={cancel}>
      <div class="sheet-head">
        <h2 id={titleId}>{title}</h2>
        {!isSticky && (
          <button type="button" class="copy" onClick={onClose} aria-label="Close">
            <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" focusable="false">
              <path d="m3.5 3.5 9 9m0-9-9 9" />
            </svg>
          </button>
        )}
      </div>
      {children}
    </dialog>
  )
}
