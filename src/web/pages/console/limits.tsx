/** @jsxImportSource preact */
// Limits of keys, projects and workspaces: which one applies, the fields to enter them, and the sheet that changes them.

import { useState } from 'preact/hooks'
import { callApi } from './api-client.ts'
import type { Limits } from './api-types.ts'
import { useToast } from './context.tsx'
import { Field, Form, Sheet } from './form.tsx'
import { useSubmit } from './hooks.ts'
import { effectiveLimits, type LimitHolder, type LimitName, limitKinds, limitText } from './values.ts'

/** The limits in force. The first holder is the object itself, whose own limits need no owner beside them. */
export function LimitsList({ holders }: { readonly holders: readonly LimitHolder[] }) {
  const limits = effectiveLimits(holders)
  if (limits.length === 0) return <span class="muted">none</span>
  return (
    <ul class="limits">
      {limits.map(({ name, value, who }) => (
        <li key={name}>
          {limitText(name, value)} {who !== holders[0]?.who && <small>by {who}</small>}
        </li>
      ))}
    </ul>
  )
}

/** As typed; empty = no limit. */
export type LimitInputs = Readonly<Record<LimitName, string>>

export function limitInputs(limits: Limits): LimitInputs {
  const inputs = limitKinds.map(({ name }) => [name, limits[name] == null ? '' : String(limits[name])] as const)
  return Object.fromEntries(inputs) as LimitInputs
}

export function limitsOf(inputs: LimitInputs): Limits {
  const entries = limitKinds.flatMap(({ name, kind }) => {
    const text = inputs[name].trim()
    return text === '' ? [] : [[name, kind === 'whole' ? Number(text) : text] as const]
  })
  return Object.fromEntries(entries)
}

export interface LimitsFieldsProps {
  readonly inputs: LimitInputs
  onChange(inputs: LimitInputs): void
}

export function LimitsFields({ inputs, onChange }: LimitsFieldsProps) {
  return (
    <div class="field-grid">
      {limitKinds.map(({ name, label, kind }) => (
        <Field
          key={name}
          label={label}
          kind={kind}
          value={inputs[name]}
          onChange={(value) => onChange({ ...inputs, [name]: value })}
        />
      ))}
    </div>
  )
}

export interface LimitsSheetProps {
  /** `key ci`, `workspace default` */
  readonly of: string
  /** Of the API: `/api/keys/key_…/limits`. */
  readonly path: string
  readonly limits: Limits
  onClose(): void
  onSaved(): void
  onUndone(): void
}

export function LimitsSheet({ of, path, limits, onClose, onSaved, onUndone }: LimitsSheetProps) {
  const [inputs, setInputs] = useState(limitInputs(limits))
  const submit = useSubmit()
  const offerUndo = useToast()
  const put = (body: Limits) => callApi<Limits>(path, { method: 'PUT', body })
  const save = () =>
    submit.run(
      () => put(limitsOf(inputs)),
      () => {
        onSaved()
        offerUndo({ text: `Limits of ${of} changed.`, undo: () => put(limits), onUndone })
      },
    )
  return (
    <Sheet title={`Limits of ${of}`} onClose={onClose}>
      <Form submit={submit} label="Save limits" busyLabel="Saving …" onCancel={onClose} onSubmit={save}>
        <p class="hint">
          Leave a field empty for no limit. The tightest limit of key, project and workspace applies. Changes apply from
          the next request.
        </p>
        <LimitsFields inputs={inputs} onChange={setInputs} />
        <LimitsDiff before={limits} inputs={inputs} />
      </Form>
    </Sheet>
  )
}

/** What saving would change. */
function LimitsDiff({ before, inputs }: { readonly before: Limits; readonly inputs: LimitInputs }) {
  const after = limitsOf(inputs)
  const was = limitInputs(before)
  const changes = limitKinds.filter(({ name }) => was[name] !== inputs[name].trim())
  const shown = (limits: Limits, name: LimitName) => (limits[name] == null ? 'no limit' : limitText(name, limits[name]))
  return (
    <ul class="diff" aria-label="Changes" aria-live="polite">
      {changes.length === 0 && <li class="muted">No changes yet.</li>}
      {changes.map(({ name, label }) => (
        <li key={name}>
          {label}: <del>{shown(before, name)}</del> → <ins>{shown(after, name)}</ins>
        </li>
      ))}
    </ul>
  )
}
