/** @jsxImportSource preact */
// What appears over a page: one dialog at a time, and the toast that offers to undo a change. Pages open them by a hook, so
// that they need no state of their own for it.

import { type ComponentChildren, createContext, Fragment } from 'preact'
import { useContext, useEffect, useMemo, useState } from 'preact/hooks'
import { Button, CloseButton, CodeBlock, useModal } from '../components.tsx'
import { type FieldRow, Form, type FormProps } from '../form.tsx'
import { useTimeout, useUniqueId } from '../hooks.ts'

export interface Undoable {
  /** `Project web changed.` */
  readonly text: string
  /** The call that reverts the change. */
  undo(): Promise<unknown>
  /** Reloads what the page shows. */
  onUndone(): void
}

export interface Overlay {
  /** Replaces an open dialog. */
  open(dialog: ComponentChildren): void
  /** Asks before a change that takes no input, most of which cannot be undone. */
  ask<Value>(question: Question<Value>): void
  close(): void
  /** Reports a change and offers to undo it. */
  offerUndo(change: Undoable): void
}

const OverlayContext = createContext<Overlay>({ open() {}, ask() {}, close() {}, offerUndo() {} })

export function useOverlay(): Overlay {
  return useContext(OverlayContext)
}

export function OverlayProvider({ children }: { readonly children: ComponentChildren }) {
  const [dialog, setDialog] = useState<{ readonly content: ComponentChildren; readonly key: number } | undefined>()
  const [change, offerUndo] = useState<Undoable | undefined>()
  const overlay = useMemo((): Overlay => {
    const open = (content: ComponentChildren) => setDialog((before) => ({ content, key: (before?.key ?? 0) + 1 }))
    return {
      open,
      ask: (question) => open(<FormDialog isDanger {...question} rows={[]} />),
      close: () => setDialog(undefined),
      offerUndo,
    }
  }, [])
  return (
    <OverlayContext.Provider value={overlay}>
      {children}
      {dialog && <Fragment key={dialog.key}>{dialog.content}</Fragment>}
      <Toast change={change} />
    </OverlayContext.Provider>
  )
}

export interface DialogProps {
  readonly title: string
  readonly children: ComponentChildren
  /** Esc does not close it, because its content is shown only once. */
  readonly isSticky?: boolean
}

export function Dialog({ title, children, isSticky = false }: DialogProps) {
  const { close } = useOverlay()
  const dialog = useModal(isSticky ? undefined : close)
  const titleId = useUniqueId()
  // Otherwise the close button would have the focus.
  useEffect(() => dialog.current?.querySelector<HTMLElement>('input, select, textarea')?.focus(), [])
  return (
    <dialog class="sheet" ref={dialog} aria-labelledby={titleId}>
      <div class="sheet-head between">
        <h2 id={titleId}>{title}</h2>
        {!isSticky && <CloseButton onClick={close} />}
      </div>
      {children}
    </dialog>
  )
}

export interface OnceDialogProps {
  readonly title: string
  /** `secret` */
  readonly what: string
  readonly value: string
  /** Where it belongs, and what to do when it is lost. */
  readonly advice: string
  /** Below it. */
  readonly children?: ComponentChildren
  onClose?(): void
}

/** Shows what cannot be shown again. Closes only by its button. */
export function OnceDialog({ title, what, value, advice, children, onClose }: OnceDialogProps) {
  const { close } = useOverlay()
  const finish = () => {
    close()
    onClose?.()
  }
  return (
    <Dialog title={title} isSticky>
      <div class="form">
        <p class="warning">
          <strong>This {what} is shown only once.</strong> {advice}
        </p>
        <CodeBlock title={what.charAt(0).toUpperCase() + what.slice(1)} what={what} code={value} />
        {children}
        <div class="sheet-foot">
          <Button onClick={finish}>Done, I have copied it</Button>
        </div>
      </div>
    </Dialog>
  )
}

export interface FormDialogProps<Row extends FieldRow, Value> extends Omit<FormProps<Row, Value>, 'onCancel' | 'name'> {
  readonly title: string
  /** Offered once the change is made. */
  readonly undo?: Omit<Undoable, 'onUndone'>
}

/** `isDanger` unless it says otherwise. */
export type Question<Value> = Pick<
  FormDialogProps<never, Value>,
  'title' | 'intro' | 'label' | 'cancelLabel' | 'isDanger' | 'send' | 'onDone'
>

/** A form to create or change something. Closes when it is done; undoing is done as well. */
export function FormDialog<const Row extends FieldRow, Value>(props: FormDialogProps<Row, Value>) {
  const { title, undo, onDone, ...form } = props
  const { close, offerUndo } = useOverlay()
  const done = (value: Value) => {
    close()
    onDone(value)
    if (undo) offerUndo({ ...undo, onUndone: () => onDone(value) })
  }
  return (
    <Dialog title={title}>
      <Form {...form} onCancel={close} onDone={done} />
    </Dialog>
  )
}

const toastMs = 10_000

/** Shown for ten seconds, or as long as it has the pointer or the focus. */
function Toast({ change }: { readonly change: Undoable | undefined }) {
  const [shown, setShown] = useState<{ readonly text: string; readonly change?: Undoable } | undefined>(undefined)
  const [isHeld, setHeld] = useState(false)
  useEffect(() => change && setShown({ text: change.text, change }), [change])
  useTimeout(() => setShown(undefined), shown && !isHeld ? toastMs : undefined, shown)
  const undo = async ({ undo: call, onUndone }: Undoable) => {
    setShown({ text: 'Undoing …' })
    setHeld(false)
    try {
      await call()
      setShown({ text: 'Undone.' })
      onUndone()
    } catch (error) {
      setShown({ text: `The change could not be undone: ${error instanceof Error ? error.message : error}` })
    }
  }
  const offered = shown?.change
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: pointer and focus only keep it open
    <div
      class="toast row"
      onMouseEnter={() => setHeld(true)}
      onMouseLeave={() => setHeld(false)}
      onFocusIn={() => setHeld(true)}
      onFocusOut={() => setHeld(false)}
    >
      {/* Always in the document, so that screen readers announce what appears in it. */}
      <p role="status">{shown?.text}</p>
      {offered && (
        <Button look="small" data-undo onClick={() => void undo(offered)}>
          Undo
        </Button>
      )}
      {shown && (
        <Button look="quiet small" onClick={() => setShown(undefined)}>
          Close
        </Button>
      )}
    </div>
  )
}
