/** @jsxImportSource preact */
// Components that the catalog and the console share: buttons, code to copy, facts, the status indicator, dialogs, and the
// list of keyboard shortcuts with helpers for handling keys.

import type { ButtonHTMLAttributes, ComponentChildren, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ShownStatus } from '../catalog/status.ts'
import type { LiveState } from './live-catalog.ts'

export interface ButtonProps extends ButtonHTMLAttributes {
  /** Classes: `quiet`, `small`, `danger`. */
  readonly look?: string
}

export function Button({ look = '', ...attributes }: ButtonProps) {
  return <button type="button" class={`button ${look}`.trimEnd()} {...attributes} />
}

const copiedShownMs = 2_000

export interface CopyButtonProps {
  readonly text: string
  /** What is copied, for screen readers: `id of sandbox/echo`. */
  readonly what: string
  /** Beside the icon; absent = the icon alone. */
  readonly label?: string
}

/** Copies a text and confirms it for a moment. */
export function CopyButton({ text, what, label }: CopyButtonProps) {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready')
  useEffect(() => {
    if (state === 'ready') return
    const timer = setTimeout(() => setState('ready'), copiedShownMs)
    return () => clearTimeout(timer)
  }, [state])
  const copy = async () => setState((await copyText(text)) ? 'copied' : 'failed')
  const shown = { ready: label, copied: 'copied', failed: 'select and copy by hand' }[state]
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
      {shown === undefined ? (
        <span class="visually-hidden">Copy the {what}</span>
      ) : (
        <span aria-live="polite">{shown}</span>
      )}
    </button>
  )
}

/** Falls back to a selection on plain http, where browsers hide the clipboard API. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = document.createElement('textarea')
    const before = document.activeElement
    area.value = text
    area.className = 'visually-hidden'
    document.body.append(area)
    area.select()
    const isCopied = document.execCommand('copy')
    area.remove()
    if (before instanceof HTMLElement) before.focus()
    return isCopied
  }
}

export function CodeBlock({ code, what }: { readonly code: string; readonly what: string }) {
  return (
    <div class="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must be able to */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} what={what} label="Copy" />
    </div>
  )
}

export type Fact = readonly [label: string, value: ComponentChildren]

/** Names and values. */
export function Facts({ class: name, facts }: { readonly class: string; readonly facts: readonly Fact[] }) {
  return (
    <dl class={name}>
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

const statusShapes = {
  ok: <circle cx="6" cy="6" r="4.5" />,
  warning: <path d="M6 1 11.5 10.5H.5z" />,
  error: <path d="M1.5 1.5h9v9h-9z" />,
  off: <circle class="hollow" cx="6" cy="6" r="4" />,
} as const

/** A status as text with an icon whose shape differs as well as its color. */
export function Status({ level, text, detail = '' }: Pick<ShownStatus, 'level' | 'text'> & Partial<ShownStatus>) {
  return (
    <span class={`status status-${level}`} title={detail === '' ? undefined : detail}>
      <svg viewBox="0 0 12 12" width="10" height="10" aria-hidden="true" focusable="false">
        {statusShapes[level]}
      </svg>
      {text}
    </span>
  )
}

const liveStatuses = {
  waiting: { level: 'off', text: 'connecting', detail: '' },
  live: { level: 'ok', text: 'live', detail: 'This page updates by itself.' },
  lost: { level: 'warning', text: 'not live, reconnecting', detail: 'This page may be out of date.' },
} as const

/** Whether the page receives updates from the server. */
export function LiveStatus({ state }: { readonly state: LiveState }) {
  return (
    <span class="live needs-script" role="status">
      <Status {...liveStatuses[state]} />
    </span>
  )
}

/** Opens a dialog over the page when the component mounts; the focus returns when it unmounts. */
export function useModal(): RefObject<HTMLDialogElement> {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    const opened = dialog.current
    opened?.showModal()
    return () => {
      opened?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return dialog
}

const shortcutsId = 'shortcuts'

export type Shortcuts = readonly (readonly [key: string, meaning: string])[]

/** A dialog that the browser closes with Esc, which also returns the focus. */
export function ShortcutsDialog({ shortcuts }: { readonly shortcuts: Shortcuts }) {
  return (
    <dialog id={shortcutsId} class="help" aria-labelledby="shortcuts-title">
      <form method="dialog">
        <h2 id="shortcuts-title">Keyboard shortcuts</h2>
        <dl>
          {shortcuts.map(([key, meaning]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
        <button type="submit" class="button quiet">
          Close
        </button>
      </form>
    </dialog>
  )
}

/** Always true: the key was handled. */
export function openShortcuts(): true {
  const dialog = document.getElementById(shortcutsId)
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal()
  return true
}

/** Whether the event is input to a field, where shortcuts do not apply. */
export function isTyping({ target }: Event): boolean {
  return target instanceof HTMLElement && target.matches('input:not([type=checkbox]), select, textarea')
}

/** Whether there was an element to focus. */
export function focusOn(element: HTMLElement | null | undefined): boolean {
  element?.focus()
  return element !== null && element !== undefined
}

/** Moves the focus from the row that has it to the next or previous row's link. */
export function focusNextRow(links: string, row: string, by: 1 | -1): boolean {
  const all = [...document.querySelectorAll<HTMLElement>(links)]
  const focused = document.activeElement?.closest(row)
  const at = all.findIndex((link) => link.closest(row) === focused)
  return focusOn(at < 0 ? all[0] : all[at + by])
}
