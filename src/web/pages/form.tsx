/** @jsxImportSource preact */
// Fields and forms. A form is a list of rows: it keeps what is typed and sends the body that its rows describe.

import type { ComponentChildren, TargetedSubmitEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { CallOptions } from './api.ts'
import { Button, ErrorNotice } from './components.tsx'
import { useIdempotencyKey, useSubmit, useUniqueId } from './hooks.ts'

export interface Option {
  readonly value: string
  readonly label: string
}

export interface FieldLook {
  readonly label: string
  readonly hint?: string | undefined
  readonly kind?: 'text' | 'password' | 'lines' | 'pairs' | keyof typeof formats
  /** A menu in place of an input. */
  readonly options?: readonly Option[]
  readonly isRequired?: boolean
  /** Spaces at its ends count. */
  readonly isExact?: boolean
  /** Further attributes of the element. */
  readonly attributes?: Readonly<Record<string, unknown>>
}

export interface FieldProps extends FieldLook {
  readonly value: string
  readonly isWide?: boolean
  readonly id?: string
  onChange(value: string): void
}

type Edited = { readonly currentTarget: { readonly value: string } }

/** A labelled input, text area or menu. */
export function Field(props: FieldProps) {
  const { label, value, hint, kind = 'text', options, isRequired, attributes, isWide, onChange } = props
  const ownId = useUniqueId()
  const id = props.id ?? ownId
  const hintId = hint === undefined ? undefined : `${id}-hint`
  const onInput = ({ currentTarget }: Edited) => onChange(currentTarget.value)
  const shared = { id, value, required: isRequired, 'aria-describedby': hintId }
  const isSecret = kind === 'password'
  const text = { ...shared, spellcheck: false, autocomplete: isSecret ? 'new-password' : 'off', onInput }
  return (
    <div class={isWide ? 'field wide' : 'field'}>
      <label for={id}>{label}</label>
      {options ? (
        <select {...shared} {...attributes} onChange={onInput}>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : kind === 'lines' || kind === 'pairs' ? (
        <textarea rows={3} {...text} {...attributes} />
      ) : (
        <input {...text} type={isSecret ? 'password' : 'text'} {...attributes} />
      )}
      {hint !== undefined && (
        <p id={hintId} class="hint">
          {hint}
        </p>
      )}
    </div>
  )
}

/** A text field whose value is used when it is left or confirmed, so that half a name is not searched for. */
export function CommittedField({ value, attributes, onChange, ...field }: FieldProps) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const commit = ({ currentTarget }: Edited) => onChange(currentTarget.value.trim())
  return <Field {...field} value={text} attributes={{ ...attributes, onChange: commit }} onChange={setText} />
}

export interface CheckboxProps {
  readonly label: ComponentChildren
  readonly isChecked: boolean
  /** Further attributes of the element; `type: 'radio'` makes it one. */
  readonly attributes?: Readonly<Record<string, unknown>>
  onChange(isChecked: boolean): void
}

export function Checkbox({ label, isChecked, attributes, onChange }: CheckboxProps) {
  return (
    <label class="tick">
      <input
        type="checkbox"
        checked={isChecked}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
        {...attributes}
      />
      <span>{label}</span>
    </label>
  )
}

/** Attributes of inputs by kind. Browsers show the title beside a value they reject. */
const formats = {
  name: { maxLength: 100 },
  /** A reason or reference. */
  remark: { maxLength: 200 },
  moment: { type: 'datetime-local' },
  date: { type: 'date' },
  decimal: {
    inputMode: 'decimal',
    pattern: '[0-9]+([.][0-9]{1,9})?',
    title: 'US dollars as a plain number with a decimal point: 25 or 2.50',
  },
  whole: { inputMode: 'numeric', pattern: '[0-9]+', title: 'A whole number without sign, comma or unit: 60' },
} as const

/** The typed values, by field. */
export type Values = Readonly<Record<string, string>>

export interface FieldRow extends FieldLook {
  readonly name: string
  /** Under the form's fold. */
  readonly isFolded?: boolean
  /** Absent = always. */
  isShown?(values: Values): boolean
}

type ValueOf<Row extends FieldRow> = Row extends { kind: 'whole' }
  ? number
  : Row extends { kind: 'lines' }
    ? string[]
    : Row extends { kind: 'pairs' }
      ? Record<string, string>
      : Row extends { options: readonly { value: infer Value }[] }
        ? Value
        : string

/**
 * The body that rows describe: trimmed, lists as lists, without empty fields. The types of the API check it where it is
 * sent.
 */
export type BodyOf<Row extends FieldRow> = {
  readonly [Each in Row as Each extends { isRequired: true } ? Each['name'] : never]: ValueOf<Each>
} & { readonly [Each in Row as Each extends { isRequired: true } ? never : Each['name']]?: ValueOf<Each> }

export function bodyOf<Row extends FieldRow>(rows: readonly Row[], values: Values): BodyOf<Row> {
  const parsed = rows.flatMap(({ name, kind, isExact }): [string, unknown][] => {
    const typed = values[name] ?? ''
    const text = isExact ? typed : typed.trim()
    if (text === '') return []
    if (kind === 'whole') return [[name, Number(text)]]
    if (kind === 'pairs') return [[name, pairsOf(text)]]
    return [[name, kind === 'lines' ? linesOf(text) : kind === 'moment' ? new Date(text).toISOString() : text]]
  })
  return Object.fromEntries(parsed) as BodyOf<Row>
}

/** Commas separate too. */
function linesOf(text: string): readonly string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** `team=web=100.00` → `100.00` by `team=web`: the last `=` separates. The gateway checks both. */
function pairsOf(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    linesOf(text).map((line) => [line.slice(0, line.lastIndexOf('=')), line.slice(line.lastIndexOf('=') + 1)]),
  )
}

/** The inverse of `pairsOf`. */
export function pairLines(pairs: Readonly<Record<string, string>>): string {
  return Object.entries(pairs)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')
}

export interface FormProps<Row extends FieldRow, Value> {
  readonly rows: readonly Row[]
  /** At the start, and again after it was sent. */
  readonly initial?: Values | undefined
  readonly label: string
  /** For screen readers, where no dialog names the form. */
  readonly name?: string
  /** The action cannot be undone. */
  readonly isDanger?: boolean
  readonly cancelLabel?: string
  /** The title of the fold. */
  readonly fold?: string
  /** Above the fields. */
  readonly intro?: string
  /** Absent = a form on the page, which has nothing to close. */
  onCancel?(): void
  /** Body members besides the fields. */
  readonly content?: unknown
  /** Sending the same again has the same idempotency key. */
  send(body: BodyOf<Row>, options: CallOptions): Promise<Value>
  onDone(value: Value): void
  /** Below the fields, such as a preview of what is typed. */
  children?(values: Values, change: (part: Values) => void): ComponentChildren
}

export function Form<const Row extends FieldRow, Value>(props: FormProps<Row, Value>) {
  const { rows, initial = {}, label, name, isDanger, cancelLabel = 'Cancel', fold, onCancel } = props
  const [values, setValues] = useState<Values>(initial)
  const idempotencyKey = useIdempotencyKey([values, props.content])
  const { isBusy, error, run } = useSubmit()
  const change = (part: Values) => setValues((before) => ({ ...before, ...part }))
  const onSubmit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    run(
      () => props.send(bodyOf(rows, values), { idempotencyKey }),
      (value) => {
        setValues(initial)
        props.onDone(value)
      },
    )
  }
  const fields = (isFolded: boolean) =>
    rows
      .filter((row) => (row.isFolded ?? false) === isFolded && (row.isShown?.(values) ?? true))
      .map((row) => (
        <Field
          key={row.name}
          {...row}
          attributes={{ ...formats[row.kind as keyof typeof formats], ...row.attributes }}
          value={values[row.name] ?? ''}
          onChange={(value) => change({ [row.name]: value })}
        />
      ))
  return (
    <form class="form" onSubmit={onSubmit} aria-label={name}>
      {props.intro !== undefined && <p>{props.intro}</p>}
      <div class="columns">{fields(false)}</div>
      {fold !== undefined && (
        <details>
          <summary>{fold}</summary>
          <div class="columns">{fields(true)}</div>
        </details>
      )}
      {props.children?.(values, change)}
      {error && <ErrorNotice error={error} />}
      <div class="row">
        <button type="submit" class={isDanger ? 'button danger' : 'button'} disabled={isBusy}>
          {isBusy ? `${label} …` : label}
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
