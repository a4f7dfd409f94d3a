/** @jsxImportSource preact */
// A labelled field with its hint. Labels stay when something is typed; placeholders would not.

import { useId } from 'preact/hooks'

export interface FieldProps {
  readonly label: string
  /** Absent = the field keeps it. */
  readonly value?: string
  readonly hint?: string
  readonly kind?: 'text' | 'password' | 'decimal' | 'whole' | 'moment' | 'lines'
  readonly isRequired?: boolean
  readonly lengthMax?: number
  onChange(value: string): void
}

const types = { text: 'text', password: 'password', decimal: 'text', whole: 'text', moment: 'datetime-local' } as const
const modes = { decimal: 'decimal', whole: 'numeric' } as const
const patterns = { decimal: '[0-9]+([.][0-9]{1,9})?', whole: '[0-9]+' } as const
/** The browser says it beside what it refuses. */
const formats = {
  decimal: 'US dollars as a plain number, with a point: 25 or 2.50',
  whole: 'A whole number, without a sign, a comma or a unit: 60',
} as const

export function Field(props: FieldProps) {
  const { label, value, hint, kind = 'text', isRequired = false, lengthMax, onChange } = props
  const id = useId()
  const shared = {
    id,
    ...(value !== undefined && { value }),
    required: isRequired,
    spellcheck: false,
    autocomplete: kind === 'password' ? 'new-password' : 'off',
    ...(hint !== undefined && { 'aria-describedby': `${id}-hint` }),
    ...(lengthMax !== undefined && { maxLength: lengthMax }),
  }
  const onInput = ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) =>
    onChange(currentTarget.value)
  return (
    <div class="field-with-hint">
      <label class="field" for={id}>
        <span>{label}</span>
        {kind === 'lines' ? (
          <textarea rows={3} {...shared} onInput={onInput} />
        ) : (
          <input
            type={types[kind]}
            {...shared}
            {...((kind === 'decimal' || kind === 'whole') && {
              inputMode: modes[kind],
              pattern: patterns[kind],
              title: formats[kind],
            })}
            onInput={onInput}
          />
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

export interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly options: readonly { readonly value: string; readonly label: string }[]
  readonly hint?: string
  onChange(value: string): void
}

export function Choice({ label, value, options, hint, onChange }: ChoiceProps) {
  return (
    <div class="field-with-hint">
      <label class="field">
        <span>{label}</span>
        <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      </label>
      {hint !== undefined && <p class="hint">{hint}</p>}
    </div>
  )
}

/** Lines of a text, trimmed, without the empty ones. */
export function linesOf(text: string): readonly string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
