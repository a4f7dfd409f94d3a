/** @jsxImportSource preact */
// Limits of keys, projects and workspaces: which one applies, and the dialog that changes them.

import { isReached, type SpendState, stateText } from '../../../api/spend-state.ts'
import { systemClock } from '../../../kernel/clock.ts'
import { countOf, percentText } from '../../catalog/format.ts'
import { callApi } from '../api.ts'
import { Amount, Meter } from '../components.tsx'
import { bodyOf, pairLines, type Values } from '../form.tsx'
import {
  effectiveLimits,
  furtherLimits,
  type LimitHolder,
  type LimitName,
  type Limits,
  limitKinds,
  limitRows,
  limitText,
} from './figures.ts'
import { FormDialog } from './overlay.tsx'

type Holder = Pick<LimitHolder, 'limits' | 'spend'>

/** Whose limits apply to a key. */
export function holdersOf(key: Holder, project?: Holder, workspace?: Holder): readonly LimitHolder[] {
  return [
    { who: 'this key', ...limitsOf(key) },
    { who: 'the project', ...limitsOf(project) },
    { who: 'the workspace', ...limitsOf(workspace) },
  ]
}

function limitsOf({ limits, spend = [] }: Holder = { limits: {} }) {
  return { limits, spend }
}

/** The limits in force. The first holder is the object itself, whose own limits need no owner beside them. */
export function LimitsList({ holders }: { readonly holders: readonly LimitHolder[] }) {
  const limits = effectiveLimits(holders)
  const further = furtherLimits(holders)
  if (limits.length + further.length === 0) return <span class="muted">none</span>
  return (
    <ul class="plain limits">
      {limits.map(({ name, value, who, state }) => (
        <li key={`${name} ${who}`}>
          {state && (
            <>
              <Amount usd={state.spent} /> of{' '}
            </>
          )}
          {limitText(name, value)} {who !== holders[0]?.who && <small>by {who}</small>}
          {state && <SpendBar state={state} />}
        </li>
      ))}
      {further.map((limit) => (
        <SpendLimitItem key={`${limit.text} ${limit.who}`} {...limit} isOwn={limit.who === holders[0]?.who} />
      ))}
    </ul>
  )
}

type FurtherLimit = ReturnType<typeof furtherLimits>[number]

/** Of a person or group, by the workspace and its projects. */
export function SpendLimitList({ limits }: { readonly limits: readonly FurtherLimit[] }) {
  if (limits.length === 0) return <span class="muted">none</span>
  return (
    <ul class="plain limits">
      {limits.map((limit) => (
        <SpendLimitItem key={`${limit.text} ${limit.who}`} {...limit} isOwn={false} />
      ))}
    </ul>
  )
}

function SpendLimitItem({ text, who, state, isOwn }: FurtherLimit & { readonly isOwn: boolean }) {
  return (
    <li>
      {text} {!isOwn && <small>by {who}</small>}
      {state && (
        <>
          {', '}
          <Amount usd={state.spent} /> spent
          <SpendBar state={state} />
        </>
      )}
    </li>
  )
}

/** In a row: what the object itself is limited to on one line, and what applies to it from above folded into another. */
export function OwnLimits({ holders: [own, ...above] }: { readonly holders: readonly LimitHolder[] }) {
  const limits = own ? effectiveLimits([own]) : []
  const inherited = above.flatMap((holder) => effectiveLimits([holder]))
  const [further, furtherInherited] = [furtherLimits(own ? [own] : []), furtherLimits(above)]
  const inheritedCount = inherited.length + furtherInherited.length
  const ownCount = limits.length + further.length
  return (
    <>
      {ownCount === 0 && inheritedCount === 0 && <span class="muted">none</span>}
      {ownCount > 0 && (
        <ul class="plain limits own-limits">
          {limits.map(({ name, value, state }) => (
            <li key={name} title={state && stateText(state, systemClock.now())}>
              {state && (
                <>
                  <Amount usd={state.spent} /> of{' '}
                </>
              )}
              {limitText(name, value)}
            </li>
          ))}
          {further.map(({ text, state }) => (
            <li key={text} title={state && stateText(state, systemClock.now())}>
              {text}
            </li>
          ))}
        </ul>
      )}
      {inheritedCount > 0 && (
        <details class="inherited">
          <summary>inherits {countOf(inheritedCount, 'limit')}</summary>
          <ul class="plain">
            {inherited.map(({ name, value, who }) => (
              <li key={`${name} ${who}`}>
                {limitText(name, value)} <small>by {who}</small>
              </li>
            ))}
            {furtherInherited.map(({ text, who }) => (
              <li key={`${text} ${who}`}>
                {text} <small>by {who}</small>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}

/** How much of a spend limit is used, and when it resets. */
export function SpendBar({ state }: { readonly state: SpendState }) {
  const { spent, limit } = state
  const share = Number(spent) / Number(limit)
  return (
    <span class={isReached(state) ? 'spend-bar error' : 'spend-bar'}>
      <Meter share={share} name={`${percentText(Math.min(1, share))} of the limit spent`} />
      <small>{stateText(state, systemClock.now())}</small>
    </span>
  )
}

export interface LimitsDialogProps {
  readonly kind: 'key' | 'project' | 'workspace'
  readonly holder: { readonly id: string; readonly name: string; readonly limits: Limits }
  onDone(): void
}

const operations = { key: 'putKeyLimits', project: 'putProjectLimits', workspace: 'putWorkspaceLimits' } as const

export function LimitsDialog({ kind, holder: { id, name, limits }, onDone }: LimitsDialogProps) {
  // The form has no fields for these, and saving must not remove them.
  const { spend_limits } = limits
  const put = (body: Limits) => callApi(operations[kind], { id, body: { ...body, spend_limits } })
  const before = Object.fromEntries(
    limitKinds.map(({ name: limit }) => {
      const value = limits[limit] ?? ''
      return [limit, typeof value === 'object' ? pairLines(value) : String(value)]
    }),
  )
  return (
    <FormDialog
      title={`Limits of ${kind} ${name}`}
      rows={limitRows}
      fold="More limits"
      initial={before}
      label="Save limits"
      intro="Leave a field empty for no limit. The tightest limit of key, project and workspace applies, from the next request. Limits of end users and tags apply to requests that name them."
      send={put}
      onDone={onDone}
      undo={{ text: `Limits of ${kind} ${name} changed.`, undo: () => put(limits) }}
    >
      {(values) => <LimitsDiff before={before} after={values} />}
    </FormDialog>
  )
}

/** What saving would change. */
function LimitsDiff({ before, after }: { readonly before: Values; readonly after: Values }) {
  const shown = (values: Values, name: LimitName) => {
    const limit = bodyOf(limitKinds, values)[name]
    // Not a number: the form says so when it is sent.
    if (Number.isNaN(limit)) return values[name]
    return limit === undefined ? 'no limit' : limitText(name, limit)
  }
  const changes = limitKinds.filter(({ name }) => shown(before, name) !== shown(after, name))
  return (
    <ul class="plain diff inset" aria-label="Changes" aria-live="polite">
      {changes.length === 0 && <li class="muted">No changes yet.</li>}
      {changes.map(({ name, label }) => (
        <li key={name}>
          {label}: <del>{shown(before, name)}</del> → <ins>{shown(after, name)}</ins>
        </li>
      ))}
    </ul>
  )
}
