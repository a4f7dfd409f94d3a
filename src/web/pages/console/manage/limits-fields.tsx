/** @jsxImportSource preact */
// The fields of a set of limits, and what they make of the limits in force. Empty means no limit.

import { Field } from './field.tsx'
import { type LimitName, limitNames } from './limit-names.ts'
import { shownLimit } from './shown-values.ts'
import type { Limits } from './things.ts'

/** As typed. */
export type LimitTexts = Readonly<Record<LimitName, string>>

export function textsOf(limits: Limits): LimitTexts {
  const texts = limitNames.map(({ name }) => [name, limits[name] == null ? '' : String(limits[name])] as const)
  return Object.fromEntries(texts) as LimitTexts
}

export function limitsOf(texts: LimitTexts): Limits {
  const entries = limitNames.flatMap(({ name, kind }) => {
    const text = texts[name].trim()
    return text === '' ? [] : [[name, kind === 'whole' ? Number(text) : text] as const]
  })
  return Object.fromEntries(entries)
}

export interface LimitsFieldsProps {
  readonly texts: LimitTexts
  onChange(texts: LimitTexts): void
}

export function LimitsFields({ texts, onChange }: LimitsFieldsProps) {
  return (
    <div class="field-grid">
      {limitNames.map(({ name, label, kind }) => (
        <Field
          key={name}
          label={label}
          kind={kind}
          value={texts[name]}
          onChange={(value) => onChange({ ...texts, [name]: value })}
        />
      ))}
    </div>
  )
}

/** What saving would change, said before it is done. */
export function LimitsDiff({ before, texts }: { readonly before: Limits; readonly texts: LimitTexts }) {
  const after = limitsOf(texts)
  const was = textsOf(before)
  const changes = limitNames.filter(({ name }) => was[name] !== texts[name].trim())
  const shown = (limits: Limits, name: LimitName) =>
    limits[name] == null ? 'no limit' : shownLimit(name, limits[name])
  return (
    <ul class="diff" aria-label="What will change" aria-live="polite">
      {changes.length === 0 && <li class="muted">Nothing is changed yet.</li>}
      {changes.map(({ name, label }) => (
        <li key={name}>
          {label}: <del>{shown(before, name)}</del> → <ins>{shown(after, name)}</ins>
        </li>
      ))}
    </ul>
  )
}
