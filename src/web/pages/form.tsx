/** @jsxImportSource preact */
// Fields and forms. A form is a list of rows: it keeps what is typed and sends the body that its rows describe. What is wrong
// is said beside its field, whether the browser or the gateway found it.

import { type ComponentChildren, createContext, type TargetedSubmitEvent } from 'preact'
import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { exactCount } from '../catalog/format.ts'
import type { ApiError, CallOptions } from './api.ts'
import { Button, ErrorNotice } from './components.tsx'
import { useIdempotencyKey, useSubmit, useUniqueId } from './hooks.ts'

export interface Option {
  readonly value: string
  readonly label: string
}

export interface FieldLook {
  readonly label: string
  readonly hint?: string | undefined
  /** `pairs`: `name=value` lines. `tags`: tags with amounts, in rows. */
  readonly kind?: 'text' | 'password' | 'lines' | 'pairs' | 'tags' | keyof typeof formats
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
  /** By which its form knows it; its label by default. */
  readonly name?: string
  /** What is wrong with the value. */
  readonly error?: string | undefined
  onChange(value: string): void
}

type Edited = { readonly currentTarget: { readonly value: string } }

/** A labelled input, text area, menu or list of pairs. */
export function Field(props: FieldProps) {
  const { label, value, hint, kind = 'text', options, isRequired, attributes, isWide } = props
  const ownId = useUniqueId()
  const id = props.id ?? ownId
  // Not the id, which differs between server and browser.
  const name = props.name ?? label
  const form = useContext(FormFaults)
  const error = props.error ?? form?.faults[name]
  const onChange = (next: string) => {
    form?.forget(name)
    props.onChange(next)
  }
  if (kind === 'tags') return <TagsField {...{ ...props, id, name, error, onChange }} />
  const notes = notesOf(id, hint, error)
  const onInput = ({ currentTarget }: Edited) => onChange(currentTarget.value)
  const shared = { id, value, required: isRequired, 'data-field': name, ...notes.attributes }
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
      {notes.shown}
    </div>
  )
}

/** What is below a field: what is wrong with it, and its hint. */
function notesOf(id: string, hint: string | undefined, error: string | undefined) {
  const ids = [...(error === undefined ? [] : [`${id}-error`]), ...(hint === undefined ? [] : [`${id}-hint`])]
  return {
    attributes: {
      'aria-describedby': ids.join(' ') || undefined,
      'aria-invalid': error === undefined ? undefined : ('true' as const),
    },
    shown: (
      <>
        {error !== undefined && (
          <p id={`${id}-error`} class="field-error" role="alert">
            {error}
          </p>
        )}
        {hint !== undefined && (
          <p id={`${id}-hint`} class="hint">
            {hint}
          </p>
        )}
      </>
    ),
  }
}

/** Tags with amounts, one pair of inputs each. The value has a line for each: `team=web=100.00`. */
function TagsField({ label, value, hint, error, attributes, id = '', name, onChange }: FieldProps) {
  const pairs = value.split('\n').map(splitPair)
  const notes = notesOf(id, hint, error)
  const put = (next: readonly (readonly [string, string])[]) => onChange(next.map((pair) => pair.join('=')).join('\n'))
  const change = (at: number, pair: readonly [string, string]) =>
    put(pairs.map((each, place) => (place === at ? pair : each)))
  const amount = formats.decimal
  return (
    <fieldset class="field wide tag-amounts" {...notes.attributes}>
      <legend>{label}</legend>
      {pairs.map(([tag, usd], at) => (
        <div key={at} class="pair">
          <input
            {...(at === 0 && { id })}
            data-field={name}
            {...attributes}
            aria-label={`Tag ${at + 1}`}
            placeholder="team=web"
            pattern="[^=]+=.+"
            title="Enter a tag as name=value: team=web."
            required={usd.trim() !== ''}
            value={tag}
            spellcheck={false}
            autocomplete="off"
            onInput={({ currentTarget }) => change(at, [currentTarget.value, usd])}
          />
          <input
            {...amount}
            data-field={name}
            {...attributes}
            aria-label={`USD for tag ${at + 1}`}
            placeholder="100.00"
            required={tag.trim() !== ''}
            value={usd}
            autocomplete="off"
            onInput={({ currentTarget }) => change(at, [tag, currentTarget.value])}
          />
          <Button
            look="quiet small"
            aria-label={`Remove tag ${at + 1}`}
            onClick={() => put(pairs.length === 1 ? [['', '']] : pairs.filter((_, place) => place !== at))}
          >
            Remove
          </Button>
        </div>
      ))}
      <p>
        <Button look="quiet small" onClick={() => put([...pairs, ['', '']])}>
          Add tag
        </Button>
      </p>
      {notes.shown}
    </fieldset>
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

const thousands = '[0-9]{1,3}(,[0-9]{3})+|[0-9]+'

/** Attributes of inputs by kind. The title is shown beside a value that does not match the pattern. */
const formats = {
  name: { maxLength: 100 },
  /** A reason or reference. */
  remark: { maxLength: 200 },
  moment: { type: 'datetime-local' },
  date: { type: 'date' },
  decimal: {
    inputMode: 'decimal',
    pattern: `[$]?(${thousands})([.][0-9]{1,9})?`,
    title: 'Enter US dollars as a number: 25 or 2.50.',
  },
  whole: { inputMode: 'numeric', pattern: thousands, title: 'Enter a whole number: 60 or 1,000.' },
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
    : Row extends { kind: 'pairs' | 'tags' }
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
    if (kind === 'whole') return [[name, Number(text.replaceAll(',', ''))]]
    if (kind === 'decimal') return [[name, plainAmount(text)]]
    if (kind === 'pairs') return [[name, Object.fromEntries(linesOf(text).map(splitPair))]]
    if (kind === 'tags') {
      const tags = tagsOf(text)
      return Object.keys(tags).length === 0 ? [] : [[name, tags]]
    }
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

/** `$1,000.50` → `1000.50` */
function plainAmount(text: string): string {
  return text.replaceAll(/[$,]/g, '')
}

/** `team=web=100.00` → `team=web` and `100.00`: the last `=` separates. */
function splitPair(line: string): readonly [tag: string, amount: string] {
  const at = line.lastIndexOf('=')
  return at === -1 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)]
}

function tagsOf(text: string): Readonly<Record<string, string>> {
  const pairs = text.split('\n').map((line) => splitPair(line.trim()))
  return Object.fromEntries(pairs.filter((pair) => pair.join('') !== '').map(([tag, usd]) => [tag, plainAmount(usd)]))
}

/** The lines of a field of pairs or tags. */
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

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement

/** Why the browser rejects what was typed; undefined = it does not. */
function faultOf(control: Control, label: string): string | undefined {
  const { validity, title, validationMessage } = control
  const { min = '', max = '' } = control as { min?: string; max?: string }
  if (validity.valid) return undefined
  if (validity.badInput) return `${label}: enter a complete value.`
  if (validity.valueMissing) return `${label} is required.`
  if (validity.patternMismatch && title !== '') return title
  if (validity.typeMismatch && control.type === 'url') return 'Enter an address such as https://example.com/hook.'
  if (validity.typeMismatch && control.type === 'email') return 'Enter an e-mail address such as ada@example.com.'
  if ((validity.rangeUnderflow || validity.rangeOverflow) && min !== '' && max !== '')
    return `${label} must be from ${min} to ${exactCount(Number(max))}.`
  return validationMessage
}

/** What is wrong, by the names of fields. */
type Faults = Readonly<Record<string, string>>

interface FormFaultsValue {
  readonly faults: Faults
  /** The field was changed. */
  forget(name: string): void
}

const FormFaults = createContext<FormFaultsValue | undefined>(undefined)

const controlsIn = (form: HTMLFormElement | null) => [...(form?.querySelectorAll<Control>('[data-field]') ?? [])]

const labelOf = (control: Control) => control.closest('.field')?.querySelector('label, legend')?.textContent ?? ''

function faultsIn(form: HTMLFormElement): Faults {
  const found: Record<string, string> = {}
  for (const control of controlsIn(form)) {
    const fault = faultOf(control, labelOf(control))
    if (fault !== undefined) found[control.dataset.field ?? ''] ??= fault
  }
  return found
}

/** Moves the focus to the first field with a fault, and opens the fold around it. */
function showFault(form: HTMLFormElement | null, faults: Faults): void {
  const wrong = controlsIn(form).filter(({ dataset }) => faults[dataset.field ?? ''] !== undefined)
  const control = wrong.find(({ validity }) => !validity.valid) ?? wrong[0]
  const fold = control?.closest('details')
  if (fold) fold.open = true
  control?.focus()
}

export interface CheckedFormProps {
  readonly class?: string | undefined
  /** For screen readers, where no dialog names the form. */
  readonly name?: string | undefined
  /** What the gateway found. */
  readonly faults?: Faults | undefined
  readonly children: ComponentChildren
  onSubmit(): void
}

/** Says what is wrong beside each field, in place of the browser's bubbles: once it was sent, until the field is changed. */
export function CheckedForm({ name, faults: given, onSubmit, children, ...rest }: CheckedFormProps) {
  const form = useRef<HTMLFormElement>(null)
  const [faults, setFaults] = useState<Faults>({})
  const show = (found: Faults) => {
    setFaults(found)
    showFault(form.current, found)
  }
  useEffect(() => {
    if (given) show(given)
  }, [given])
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const found = faultsIn(event.currentTarget)
    show(found)
    if (Object.keys(found).length === 0) onSubmit()
  }
  const forget = (field: string) =>
    setFaults((before) => Object.fromEntries(Object.entries(before).filter(([each]) => each !== field)))
  return (
    <FormFaults.Provider value={{ faults, forget }}>
      <form {...rest} onSubmit={submit} aria-label={name} noValidate ref={form}>
        {children}
      </form>
    </FormFaults.Provider>
  )
}

/** The gateway's message beside the field it names, with the field's label for its name. undefined = it names none. */
function faultFrom(error: ApiError | undefined, rows: readonly FieldRow[], values: Values): Faults | undefined {
  if (!error) return undefined
  const { param, message } = error
  const [name = ''] = param.replace(/^limits\./, '').split(/[[.]/, 1)
  const row = rows.find((each) => each.name === name && (each.isShown?.(values) ?? true))
  return row && { [name]: message.replace(/`([^`]*)`/, (quoted, path) => (path === param ? row.label : quoted)) }
}

export function Form<const Row extends FieldRow, Value>(props: FormProps<Row, Value>) {
  const { rows, initial = {}, label, name, isDanger, cancelLabel = 'Cancel', fold, onCancel } = props
  const [values, setValues] = useState<Values>(initial)
  const hasFolded = rows.some(({ name: row, isFolded }) => isFolded && (initial[row] ?? '') !== '')
  const idempotencyKey = useIdempotencyKey([values, props.content])
  const { isBusy, error, run } = useSubmit()
  const faults = useMemo(() => faultFrom(error, rows, values), [error])
  const change = (part: Values) => setValues((before) => ({ ...before, ...part }))
  const onSubmit = () =>
    run(
      () => props.send(bodyOf(rows, values), { idempotencyKey }),
      (value) => {
        setValues(initial)
        props.onDone(value)
      },
    )
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
    <CheckedForm class="form" onSubmit={onSubmit} name={name} faults={faults}>
      {props.intro !== undefined && <p>{props.intro}</p>}
      <div class="columns">{fields(false)}</div>
      {fold !== undefined && (
        <details open={hasFolded}>
          <summary>{fold}</summary>
          <div class="columns">{fields(true)}</div>
        </details>
      )}
      {props.children?.(values, change)}
      {error && !faults && <ErrorNotice error={error} />}
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
    </CheckedForm>
  )
}
