/** @jsxImportSource preact */
// The form of the console: its fields, the buttons at its end, and the sheet (a dialog over the page) that most forms are in.

import type { ComponentChildren, TargetedSubmitEvent } from 'preact'
import { useEffect, useId } from 'preact/hooks'
import type { ApiError, CallOptions } from '../api.ts'
import { Button, useModal } from '../components.tsx'
import { useIdempotencyKey, useSubmit } from '../hooks.ts'
import { ErrorNotice } from './components.tsx'

export interface SheetProps {
  readonly title: string
  readonly children: ComponentChildren
  /** Esc does not close it, because its content is shown only once. */
  readonly isSticky?: boolean
  onClose(): void
}

export function Sheet({ title, children, isSticky = false, onClose }: SheetProps) {
  const dialog = useModal()
  const titleId = useId()
  // Otherwise the close button would have the focus.
  useEffect(() => dialog.current?.querySelector<HTMLElement>('input, select, textarea')?.focus(), [])
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

export interface FormProps<Value> {
  readonly label: string
  /** While the call runs: `Saving …` */
  readonly busyLabel: string
  readonly children: ComponentChildren
  /** What is sent. Sending the same again has the same idempotency key. */
  readonly content?: unknown
  /** For screen readers, where no sheet names the form. */
  readonly name?: string
  /** The action cannot be undone. */
  readonly isDanger?: boolean
  readonly cancelLabel?: string
  /** Absent = a form on the page, which has nothing to close. */
  onCancel?(): void
  send(options: CallOptions): Promise<Value | ApiError>
  onDone(value: Value): void
}

export function Form<Value>(props: FormProps<Value>) {
  const { label, busyLabel, children, content, name, isDanger, cancelLabel = 'Cancel', onCancel, send, onDone } = props
  const idempotencyKey = useIdempotencyKey(content)
  const { isBusy, error, run } = useSubmit()
  const onSubmit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    run(() => send({ idempotencyKey }), onDone)
  }
  return (
    <form class={onCancel ? 'sheet-form' : 'page-form'} onSubmit={onSubmit} aria-label={name}>
      {children}
      {error && <ErrorNotice error={error} />}
      <div class="form-actions">
        <button type="submit" class={isDanger ? 'button danger' : 'button'} disabled={isBusy}>
          {isBusy ? busyLabel : label}
        </button>
        {onCancel && (
          <Button look="quiet" onClick={onCancel}>
            {cancelLabel}
          </Button>
        )}
      </div>
    </form>
  )
}

export interface FormSheetProps<Value> extends Omit<FormProps<Value>, 'onCancel' | 'name'> {
  readonly title: string
  onClose(): void
}

export function FormSheet<Value>({ title, onClose, ...form }: FormSheetProps<Value>) {
  return (
    <Sheet title={title} onClose={onClose}>
      <Form {...form} onCancel={onClose} />
    </Sheet>
  )
}

export interface FieldProps {
  readonly label: string
  /** Absent = the element keeps it. */
  readonly value?: string
  readonly hint?: string
  readonly kind?: 'text' | 'password' | 'decimal' | 'whole' | 'moment' | 'lines'
  readonly isRequired?: boolean
  readonly lengthMax?: number
  /** Further attributes of the element. */
  readonly attributes?: Readonly<Record<string, unknown>>
  onChange(value: string): void
}

const types = { text: 'text', password: 'password', decimal: 'text', whole: 'text', moment: 'datetime-local' } as const
/** Browsers show the title beside a value they reject. */
const numbers = {
  decimal: {
    inputMode: 'decimal',
    pattern: '[0-9]+([.][0-9]{1,9})?',
    title: 'US dollars as a plain number with a decimal point: 25 or 2.50',
  },
  whole: { inputMode: 'numeric', pattern: '[0-9]+', title: 'A whole number without sign, comma or unit: 60' },
} as const

export function Field(props: FieldProps) {
  const { label, value, hint, kind = 'text', isRequired = false, lengthMax, attributes, onChange } = props
  const id = useId()
  const shared = {
    id,
    ...(value !== undefined && { value }),
    required: isRequired,
    spellcheck: false,
    autocomplete: kind === 'password' ? 'new-password' : 'off',
    ...(hint !== undefined && { 'aria-describedby': `${id}-hint` }),
    ...(lengthMax !== undefined && { maxLength: lengthMax }),
    ...attributes,
    onInput: ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) =>
      onChange(currentTarget.value),
  }
  return (
    <div class="field-with-hint">
      <label class="field" for={id}>
        <span>{label}</span>
        {kind === 'lines' ? (
          <textarea rows={3} {...shared} />
        ) : (
          <input type={types[kind]} {...shared} {...(kind === 'decimal' || kind === 'whole' ? numbers[kind] : {})} />
        )}
      </label>
      {hint !== undefined && (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
    </div>
  )
}

export interface FieldRow<Name extends string> extends Omit<FieldProps, 'value' | 'onChange'> {
  readonly name: Name
}

export interface FieldsProps<Name extends string> {
  readonly rows: readonly FieldRow<Name>[]
  /** As typed. */
  readonly values: Readonly<Record<Name, string>>
  onChange(values: Readonly<Record<Name, string>>): void
}

/** Several fields over one object. */
export function Fields<Name extends string>({ rows, values, onChange }: FieldsProps<Name>) {
  return (
    <>
      {rows.map(({ name, ...row }) => (
        <Field key={name} {...row} value={values[name]} onChange={(value) => onChange({ ...values, [name]: value })} />
      ))}
    </>
  )
}

export interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly options: readonly { readonly value: string; readonly label: string }[]
  readonly hint?: string
  readonly isRequired?: boolean
  readonly isWide?: boolean
  onChange(value: string): void
}

/** A labelled menu. */
export function Choice({ label, value, options, hint, isRequired, isWide, onChange }: ChoiceProps) {
  const menu = (
    <label class={isWide ? 'field wide' : 'field'}>
      <span>{label}</span>
      <select value={value} required={isRequired} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </label>
  )
  if (hint === undefined) return menu
  return (
    <div class="field-with-hint">
      {menu}
      <p class="hint">{hint}</p>
    </div>
  )
}

export interface CheckboxProps {
  readonly label: string
  readonly isChecked: boolean
  readonly isDisabled?: boolean
  onChange(isChecked: boolean): void
}

export function Checkbox({ label, isChecked, isDisabled, onChange }: CheckboxProps) {
  return (
    <label class="tick">
      <input
        type="checkbox"
        checked={isChecked}
        disabled={isDisabled}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  )
}

/** The lines of a text, trimmed, without empty ones. Commas separate too. */
export function linesOf(text: string): readonly string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
