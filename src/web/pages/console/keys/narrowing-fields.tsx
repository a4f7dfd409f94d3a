/** @jsxImportSource preact */
// What makes a new key good for less: limits, an end, addresses, models. Left alone, it narrows nothing.

import { systemClock } from '../../../../kernel/clock.ts'
import { Choice, Field } from '../manage/field.tsx'
import { LimitsFields, type LimitTexts } from '../manage/limits-fields.tsx'

/** As typed. */
export interface NarrowingWish {
  readonly limits: LimitTexts
  /** Days, or `at` for a moment of its own; empty = it never expires. */
  readonly life: string
  /** Reckoned when the life was chosen, so that the form says the same when it is sent again. */
  readonly expiresAt: number | undefined
  /** One in a line. */
  readonly sources: string
  readonly models: string
}

export interface NarrowingFieldsProps {
  readonly wish: NarrowingWish
  onChange(wish: NarrowingWish): void
}

const dayMs = 86_400_000
const lives = [
  { value: '', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: 'at', label: 'At a moment …' },
] as const

export function NarrowingFields({ wish, onChange }: NarrowingFieldsProps) {
  const change = (part: Partial<NarrowingWish>) => onChange({ ...wish, ...part })
  const chooseLife = (life: string) => {
    const days = Number(life)
    change({ life, expiresAt: days > 0 ? systemClock.now() + days * dayMs : undefined })
  }
  return (
    <div class="sheet-form">
      <LimitsFields texts={wish.limits} onChange={(limits) => change({ limits })} />
      <Choice label="Expires" value={wish.life} options={lives} onChange={chooseLife} />
      {wish.life === 'at' && <MomentField onChange={(expiresAt) => change({ expiresAt })} />}
      <Field
        label="Only from these addresses"
        hint="One address or range in a line, such as 10.0.0.0/8. Empty = from anywhere. It cannot be changed later."
        kind="lines"
        value={wish.sources}
        onChange={(sources) => change({ sources })}
      />
      <Field
        label="Only these models"
        hint="One id or prefix/* in a line. Empty = all that the project may call. It cannot be changed later."
        kind="lines"
        value={wish.models}
        onChange={(models) => change({ models })}
      />
    </div>
  )
}

function MomentField({ onChange }: { onChange(expiresAt: number | undefined): void }) {
  const read = (text: string) => {
    const moment = Date.parse(text)
    onChange(Number.isNaN(moment) ? undefined : moment)
  }
  return <Field label="Good until (your time)" kind="moment" isRequired onChange={read} />
}
