/** @jsxImportSource preact */
// Components that the catalog and the console share: amounts and percentages, buttons, banners, skeletons, menus, tabs,
// choices, meters, side panels, code to copy, facts, errors, the status indicator, dialogs, and the list of keyboard shortcuts
// with helpers for handling keys. Their styles are in styles/components.css.

import {
  type ButtonHTMLAttributes,
  type ComponentChildren,
  Fragment,
  type RefObject,
  type TargetedClipboardEvent,
} from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ShownStatus } from '../../api/route-state.ts'
import { amountText, decimalsOf, percentText, usdText } from '../catalog/format.ts'
import { type ApiError, signInAgain } from './api.ts'
import { useTimeout, useUniqueId } from './hooks.ts'
import { Icon, type IconName } from './icons.tsx'
import type { LiveState } from './live-catalog.ts'

export interface ButtonProps extends ButtonHTMLAttributes {
  /** Classes: `quiet`, `small`, `danger`. */
  readonly look?: string
}

export function Button({ look = '', ...attributes }: ButtonProps) {
  return <button type="button" class={`button ${look}`.trimEnd()} {...attributes} />
}

export interface AmountProps {
  /** A decimal, or a word in its place such as `free`; null = not known. */
  readonly usd: string | null
  /** Shows every digit: prices, and the lines of a charge. */
  readonly isExact?: boolean
  /** Before an amount that comes in: `+`. */
  readonly sign?: string
  /** Of its column, so that decimal points line up. */
  readonly decimals?: number | undefined
  /** Classes. */
  readonly look?: string
  readonly title?: string | undefined
}

/** An amount on one line. One that is shortened has all its digits on hover and when it is copied. */
export function Amount({ usd, isExact = false, sign = '', decimals = 0, look = '', title }: AmountProps) {
  const text = usd === null ? '–' : sign + (isExact ? usdText(usd) : amountText(usd))
  const exact = usd === null ? text : sign + usdText(usd)
  const missing = decimals - decimalsOf(text)
  const copy = ({ currentTarget, clipboardData }: TargetedClipboardEvent<HTMLElement>): boolean => {
    const selected = getSelection()
    const isInside = (node: Node | null | undefined) => node != null && currentTarget.contains(node)
    if (!isInside(selected?.anchorNode) || !isInside(selected?.focusNode)) return false
    clipboardData?.setData('text/plain', exact)
    return true
  }
  return (
    <span
      class={`amount${usd === null ? ' muted' : ''}${look === '' ? '' : ` ${look}`}`}
      data-usd={isExact ? undefined : usd}
      data-pad={missing > 0 ? `${missing === decimals ? '.' : ''}${'0'.repeat(missing)}` : undefined}
      title={title ?? (text === exact ? undefined : exact)}
      onCopy={text === exact ? undefined : (event) => copy(event) && event.preventDefault()}
    >
      {text}
    </span>
  )
}

/** A share from 0 to 1; null = of nothing. */
export function Percent({ share }: { readonly share: number | null }) {
  return <span class={share === null ? 'amount muted' : 'amount'}>{share === null ? '–' : percentText(share)}</span>
}

export interface BannerProps {
  readonly children: ComponentChildren
  /** A button or link at its end. */
  readonly action: ComponentChildren
}

/** A warning across the page, for example that a workspace can no longer pay. */
export function Banner({ children, action }: BannerProps) {
  return (
    <div class="banner" role="status">
      <Icon name="warning" />
      <div class="banner-text">{children}</div>
      {action}
    </div>
  )
}

/** Bars in place of what loads. Their number reserves its height. */
export function Skeleton({ what, rows = 3 }: { readonly what: string; readonly rows?: number }) {
  return (
    <div class="stack tight" role="status">
      <span class="visually-hidden loading">Loading {what} …</span>
      {Array.from({ length: rows }, (_, at) => (
        <span key={at} class="skeleton" />
      ))}
    </div>
  )
}

export interface MenuItem {
  readonly label: string
  readonly icon?: IconName
  /** At the end of the line, smaller. */
  readonly note?: ComponentChildren
  readonly isDanger?: boolean
  /** One of several choices; undefined = not a choice. */
  readonly isChosen?: boolean
  /** On or off; the menu stays open. undefined = cannot be switched. */
  readonly isTicked?: boolean
  /** Begins a new group. */
  readonly isFirst?: boolean
  /** Either leads somewhere or does something. */
  readonly href?: string
  run?(): void
}

export interface MenuProps {
  /** For screen readers: `Actions for ci`. A button with visible content is named by that. */
  readonly name: string
  readonly items: readonly MenuItem[]
  /** Absent = "⋯". */
  readonly children?: ComponentChildren
  /** Classes of the button; `icon-button` by default. */
  readonly look?: string
  /** Opens toward the end of the line instead of its start. */
  readonly isStart?: boolean
  /** Above the items. */
  readonly head?: ComponentChildren
  /** A field that finds items by words of their labels. */
  readonly search?: { readonly label: string; readonly placeholder: string; readonly none?: string } | undefined
}

/** So that a long list opens at once. */
const listedMax = 50

/** A button that opens a list of actions or links. Arrow keys move, Esc and a click elsewhere close. */
export function Menu({ name, items, children, look = 'icon-button', isStart = false, head, search }: MenuProps) {
  const [isOpen, setOpen] = useState(false)
  const [typed, setTyped] = useState('')
  const words = typed.toLowerCase().split(/\s+/)
  const found = items.filter(({ label }) => words.every((word) => label.toLowerCase().includes(word)))
  const menu = useRef<HTMLDivElement>(null)
  const trigger = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    if (!isOpen) return
    menu.current?.querySelector<HTMLElement>('input, [role^=menuitem]')?.focus()
    const onPress = ({ target }: Event) => {
      if (target instanceof Node && !menu.current?.contains(target)) setOpen(false)
    }
    document.addEventListener('pointerdown', onPress)
    return () => document.removeEventListener('pointerdown', onPress)
  }, [isOpen])
  const close = () => {
    setOpen(false)
    setTyped('')
    trigger.current?.focus()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (!isOpen) return
    const options = [...(menu.current?.querySelectorAll<HTMLElement>('[role^=menuitem]') ?? [])]
    const at = options.indexOf(document.activeElement as HTMLElement)
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: options.length - 1 }[event.key]
    if (event.key === 'Tab') setOpen(false)
    else if (event.key === 'Escape') close()
    else if (to === undefined || (at < 0 && event.key !== 'ArrowDown')) return
    else options[(to + options.length) % options.length]?.focus()
    if (event.key === 'Tab') return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it handles the keys of the button and the items in it
    <div class="menu" ref={menu} onKeyDown={onKeyDown}>
      <button
        ref={trigger}
        type="button"
        class={look}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-label={children === undefined ? name : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        {children ?? <Icon name="more" />}
      </button>
      {isOpen && (
        <div class={isStart ? 'menu-list start' : 'menu-list'}>
          {head}
          {search && (
            <input
              type="search"
              class="menu-search"
              aria-label={search.label}
              placeholder={search.placeholder}
              value={typed}
              onInput={({ currentTarget }) => setTyped(currentTarget.value)}
            />
          )}
          {found.length === 0 && search?.none && <p class="menu-head">{search.none}</p>}
          <div role="menu" aria-label={name}>
            {found.slice(0, search ? listedMax : undefined).map((item) => (
              <MenuRow key={`${item.label} ${item.href ?? ''}`} item={item} onDone={close} />
            ))}
          </div>
        </div>
      )}
    </div>
  )
}

function MenuRow({ item, onDone }: { readonly item: MenuItem; onDone(): void }) {
  const { label, icon, note, isDanger, isChosen, isTicked, isFirst, href, run } = item
  const content = (
    <>
      {icon && <Icon name={icon} />}
      <span>{label}</span>
      {note !== undefined && <small>{note}</small>}
      {(isChosen || isTicked) && <Icon name="check" size={14} />}
    </>
  )
  const shared = {
    class: isDanger ? 'menu-item danger' : 'menu-item',
    role: isTicked !== undefined ? 'menuitemcheckbox' : isChosen === undefined ? 'menuitem' : 'menuitemradio',
    'aria-checked': isTicked ?? isChosen,
    tabIndex: -1,
  } as const
  const act = () => {
    if (isTicked === undefined) onDone()
    run?.()
  }
  return (
    <>
      {isFirst && <hr />}
      {href === undefined ? (
        <button type="button" {...shared} onClick={act}>
          {content}
        </button>
      ) : (
        <a href={href} {...shared} onClick={onDone}>
          {content}
        </a>
      )}
    </>
  )
}

export interface Tab {
  readonly label: string
  readonly content: ComponentChildren
}

/** Without scripts the contents are shown one below the other, each under its label. */
export function Tabs({ name, tabs }: { readonly name: string; readonly tabs: readonly Tab[] }) {
  const [open, setOpen] = useState(0)
  const id = useUniqueId()
  const onKeyDown = (event: KeyboardEvent) => {
    const to = { ArrowRight: open + 1, ArrowLeft: open - 1, Home: 0, End: tabs.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    const next = (to + tabs.length) % tabs.length
    setOpen(next)
    document.getElementById(`${id}-tab-${next}`)?.focus()
  }
  return (
    <div>
      <div class="tabs row needs-script" role="tablist" aria-label={name}>
        {tabs.map(({ label }, index) => (
          <button
            key={label}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === open}
            aria-controls={`${id}-panel-${index}`}
            tabIndex={index === open ? 0 : -1}
            onClick={() => setOpen(index)}
            onKeyDown={onKeyDown}
          >
            {label}
          </button>
        ))}
      </div>
      {tabs.map(({ label, content }, index) => (
        <div
          key={label}
          class="panel stack tight"
          role="tabpanel"
          id={`${id}-panel-${index}`}
          aria-labelledby={`${id}-tab-${index}`}
          hidden={index !== open}
        >
          <h3 class="without-script">{label}</h3>
          {content}
        </div>
      ))}
    </div>
  )
}

export interface SegmentsProps<Value extends string> {
  readonly name: string
  readonly value: Value
  readonly options: readonly { readonly value: Value; readonly label: string }[]
  onChange(value: Value): void
}

/** A few choices of which one applies: a metric, a period. */
export function Segments<Value extends string>({ name, value, options, onChange }: SegmentsProps<Value>) {
  return (
    <fieldset class="segments">
      <legend class="visually-hidden">{name}</legend>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  )
}

/** How much of a limit is used, from 0 to 1 and beyond. Amber from 80 %, red once it is reached. */
export function Meter({ share, name }: { readonly share: number; readonly name: string }) {
  const look = share >= 1 ? 'meter full' : share >= 0.8 ? 'meter warn' : 'meter'
  return <progress class={look} aria-label={name} max={1} value={Math.min(1, Math.max(0, share))} />
}

/** How much of some work is done, from 0 to 1. */
export function ProgressBar({ share, name }: { readonly share: number; readonly name: string }) {
  return <progress class="meter" aria-label={name} max={1} value={share} />
}

/** Allows a line break before each slash, so that no word is broken. */
export function Path({ path }: { readonly path: string }) {
  return (
    <>
      {path.split(/(?=\/)/).map((part, place) => (
        <Fragment key={`${place} ${part}`}>
          {place > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </>
  )
}

export interface SidePanelProps {
  readonly title: string
  readonly children: ComponentChildren
  /** Beside the title, such as a link to the whole page. */
  readonly action?: ComponentChildren
  onClose(): void
}

/** Details of a row over the right side of the page. Esc and a click beside it close it. */
export function SidePanel({ title, children, action, onClose }: SidePanelProps) {
  const dialog = useModal(onClose)
  const titleId = useUniqueId()
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc closes it too
    <dialog
      class="side-panel"
      ref={dialog}
      aria-labelledby={titleId}
      onClick={({ target }) => target === dialog.current && onClose()}
    >
      <div class="sheet-head between">
        <h2 id={titleId}>{title}</h2>
        <span class="row">
          {action}
          <CloseButton onClick={onClose} />
        </span>
      </div>
      <div class="side-panel-body stack">{children}</div>
    </dialog>
  )
}

export function CloseButton({ onClick }: { onClick(): void }) {
  return (
    <button type="button" class="icon-button" onClick={onClick} aria-label="Close">
      <Icon name="close" />
    </button>
  )
}

const copiedShownMs = 2_000

export interface CopyButtonProps {
  readonly text: string
  /** The subject of the copy, for screen readers: `id of sandbox/echo`. */
  readonly what: string
  /** Beside the icon; absent = the icon alone. */
  readonly label?: string
}

/** Copies a text and confirms it for a moment. */
export function CopyButton({ text, what, label }: CopyButtonProps) {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready')
  useTimeout(() => setState('ready'), state === 'ready' ? undefined : copiedShownMs, state)
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
      <Icon name={state === 'copied' ? 'check' : 'copy'} size={14} />
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
      {error.needsSignIn && (
        <Button look="small" onClick={signInAgain}>
          Sign in again
        </Button>
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
export function Facts({
  class: name = 'facts-grid',
  facts,
}: {
  readonly class?: string
  readonly facts: readonly Fact[]
}) {
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

/**
 * Opens a dialog over the page when the component mounts; the focus returns when it unmounts. Esc calls `onDismiss`; without
 * it the dialog stays. Browsers let a page prevent that once and close it the next time, so it is opened again.
 */
export function useModal(onDismiss: (() => void) | undefined): RefObject<HTMLDialogElement> {
  const dialog = useRef<HTMLDialogElement>(null)
  const dismiss = useRef(onDismiss)
  dismiss.current = onDismiss
  useEffect(() => {
    const before = document.activeElement
    const opened = dialog.current
    const stay = (event: Event) => dismiss.current ?? event.preventDefault()
    const closed = () => (dismiss.current ? dismiss.current() : opened?.showModal())
    opened?.addEventListener('cancel', stay)
    opened?.addEventListener('close', closed)
    opened?.showModal()
    return () => {
      opened?.removeEventListener('close', closed)
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
