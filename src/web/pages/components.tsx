/** @jsxImportSource preact */
// Components that the catalog and the console share: buttons, code to copy, facts, errors, the status indicator, dialogs, and
// the list of keyboard shortcuts with helpers for handling keys.

import type { ButtonHTMLAttributes, ComponentChildren, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ShownStatus } from '../catalog/status.ts'
import type { ApiError } from './api.ts'
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
      class={`copy icon-button needs-script ${state}`}
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

export interface CodeBlockProps {
  readonly code: string
  /** For screen readers: `.env lines` */
  readonly what: string
  /** Absent = the code alone, which scrolls; below a title it is wrapped. */
  readonly title?: string
}

/** A text to take away, shown whole, with a button that copies it. */
export function CodeBlock({ code, what, title }: CodeBlockProps) {
  return (
    <div class={title === undefined ? 'code-block' : 'code-block titled'}>
      {title !== undefined && <h3>{title}</h3>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must be able to */}
      <pre tabIndex={0} data-what={what}>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} what={what} label="Copy" />
    </div>
  )
}

export function ErrorNotice({ error, retry }: { readonly error: ApiError; retry?(): void }) {
  return (
    <div class="warning" role="alert">
      <p>{error.message}</p>
      {error.requestId !== '' && (
        <p class="hint">
          Request id <code>{error.requestId}</code>
        </p>
      )}
      {retry && (
        <Button look="quiet small" onClick={retry}>
          Try again
        </Button>
      )}
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

/** Whether the event is input to a field, where shortcuts do not apply. */
export function isTyping({ target }: Event): boolean {
  return target instanceof HTMLElement && target.matches('input:not([type=checkbox]), select, textarea')
}

/** Handles keys of the whole page, without Ctrl, Alt and Meta. The handler says whether the key was a shortcut. */
export function useShortcuts(handle: (event: KeyboardEvent) => boolean): void {
  const latest = useRef(handle)
  latest.current = handle
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (latest.current(event)) event.preventDefault()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}

const rowSteps: Readonly<Record<string, 1 | -1>> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }

/** The shortcuts of every page: / to search, ? for help, and j, k or the arrows to move between the links of rows. */
export function handleCommonKey(key: string): boolean {
  if (key === '/') return focusOn(document.querySelector<HTMLElement>('[data-search]'))
  if (key === '?') {
    const dialog = document.getElementById(shortcutsId)
    if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal()
    return true
  }
  const step = rowSteps[key]
  if (step === undefined) return false
  const links = [...document.querySelectorAll<HTMLElement>('[data-row] > th a')]
  const focused = document.activeElement?.closest('[data-row]')
  const at = links.findIndex((link) => link.closest('[data-row]') === focused)
  return focusOn(at < 0 ? links[0] : links[at + step])
}

/** Whether there was an element to focus. */
function focusOn(element: HTMLElement | null | undefined): boolean {
  element?.focus()
  return element !== null && element !== undefined
}
