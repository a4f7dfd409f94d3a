/** @jsxImportSource preact */
// Limits of keys, projects and workspaces: which one applies, the fields to enter them, and the sheet that changes them.

import { useState } from 'preact/hooks'
import { callApi } from '../api.ts'
import { useToast } from './context.tsx'
import { effectiveLimits, type LimitHolder, type LimitName, type Limits, limitKinds, limitText } from './figures.ts'
import { Fields, FormSheet } from './form.tsx'

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
      <Fields rows={limitKinds} values={inputs} onChange={onChange} />
    </div>
  )
}

export interface LimitsSheetProps {
  readonly kind: 'key' | 'project' | 'workspace'
  readonly holder: { readonly id: string; readonly name: string; readonly limits: Limits }
  onClose(): void
  onSaved(): void
  onUndone(): void
}

const operations = { key: 'putKeyLimits', project: 'putProjectLimits', workspace: 'putWorkspaceLimits' } as const

export function LimitsSheet({ kind, holder: { id, name, limits }, onClose, onSaved, onUndone }: LimitsSheetProps) {
  const [inputs, setInputs] = useState(limitInputs(limits))
  const offerUndo = useToast()
  const put = (body: Limits) => callApi(operations[kind], { id, body })
  return (
    <FormSheet
      title={`Limits of ${kind} ${name}`}
      label="Save limits"
      busyLabel="Saving …"
      onClose={onClose}
      send={() => put(limitsOf(inputs))}
      onDone={() => {
        onSaved()
        offerUndo({ text: `Limits of ${kind} ${name} changed.`, undo: () => put(limits), onUndone })
      }}
    >
      <p class="hint">
        Leave a field empty for no limit. The tightest limit of key, project and workspace applies. Changes apply from
        the next request.
      </p>
      <LimitsFields inputs={inputs} onChange={setInputs} />
      <LimitsDiff before={limits} inputs={inputs} />
    </FormSheet>
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
