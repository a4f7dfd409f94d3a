/** @jsxImportSource preact */
// The settings that Claude Code gets from this gateway, for operators: rules in order, for everyone, a role or a group, and a
// preview of what a role or a person gets by the rules as they are edited.

import { useState } from 'preact/hooks'
import { roles } from '../../../kernel/roles.ts'
import { type AnswerOf, callApi, callForAll } from '../api.ts'
import { Button, CodeBlock, ErrorNotice } from '../components.tsx'
import { CommittedField, Field } from '../form.tsx'
import { useApi, useQuery, useSubmit } from '../hooks.ts'
import { Actions, Card, DetailHead, emptyState, QueryView, Section } from './components.tsx'
import { useWorkspaces } from './context.tsx'
import { useConsolePath, useTitle } from './navigation.ts'

export const managedSettingsPath = 'settings/managed-settings'

type Saved = AnswerOf<'getManagedSettings'>
type Rule = Saved['rules'][number]
type Role = NonNullable<Rule['role']>

/** A rule as it is typed. `key` stays with it when rules change places. */
interface Draft {
  readonly key: number
  readonly role: string
  readonly group: string
  readonly settings: string
}

export function ManagedSettingsView() {
  const to = useConsolePath()
  useTitle('Managed settings')
  const query = useApi('getManagedSettings', {}, { keepPrevious: true })
  return (
    <>
      <DetailHead trail={[['Settings', to('settings')]]} title="Managed settings">
        <p class="lede">
          Claude Code reads these settings when someone signs in to this gateway, and every hour after that. They
          override the person’s own. <a href="/docs/operate/sign-in#managed-settings">How rules are merged</a>
        </p>
      </DetailHead>
      <QueryView what="managed settings" query={query}>
        {(saved) => <Rules key={JSON.stringify(saved)} saved={saved} onSaved={query.reload} />}
      </QueryView>
    </>
  )
}

let drafts = 0

function draftOf({ role, group, settings }: Rule): Draft {
  return { key: ++drafts, role: role ?? '', group: group ?? '', settings: JSON.stringify(settings, null, 2) }
}

/** undefined = the text is no JSON object. */
function settingsIn(text: string): Rule['settings'] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Rule['settings']) : undefined
  } catch {
    return undefined
  }
}

/** undefined = at least one has a mistake. */
function rulesFrom(typed: readonly Draft[]): Rule[] | undefined {
  const rules = typed.flatMap(({ role, group, settings: text }): Rule[] => {
    const settings = settingsIn(text)
    if (!settings) return []
    return [{ role: role === '' ? null : (role as Role), group: group.trim() === '' ? null : group.trim(), settings }]
  })
  return rules.length === typed.length ? rules : undefined
}

function Rules({ saved, onSaved }: { readonly saved: Saved; onSaved(): void }) {
  const [typed, setTyped] = useState<readonly Draft[]>(() => saved.rules.map(draftOf))
  const submit = useSubmit()
  const rules = rulesFrom(typed)
  const isChanged = JSON.stringify(rules) !== JSON.stringify(saved.rules)
  const isFixed = saved.managed_by === 'file'
  const change = (at: number, part: Partial<Draft>) =>
    setTyped((before) => before.map((draft, place) => (place === at ? { ...draft, ...part } : draft)))
  const move = (at: number, by: number) =>
    setTyped((before) => {
      const others = before.filter((_, place) => place !== at)
      return [...others.slice(0, at + by), ...before.slice(at, at + 1), ...others.slice(at + by)]
    })
  const remove = (at: number) => setTyped((before) => before.filter((_, place) => place !== at))
  const add = () => setTyped((before) => [...before, draftOf({ settings: {} })])
  const save = () => rules && submit.run(() => callApi('putManagedSettings', { body: { rules } }), onSaved)
  return (
    <>
      {isFixed && (
        <p class="warning" role="note">
          These rules are managed by a file. Change them there and run <code>tollgate config apply FILE</code>.
        </p>
      )}
      <Section title="Rules" action={!isFixed && { label: 'Add rule', run: add }}>
        {typed.length === 0 &&
          emptyState('No rules', 'Claude Code gets no managed settings. Add a rule to allow, deny or set something.')}
        {typed.map((draft, at) => (
          <RuleCard
            key={draft.key}
            draft={draft}
            number={at + 1}
            isFixed={isFixed}
            onChange={(part) => change(at, part)}
            {...(at > 0 && { onUp: () => move(at, -1) })}
            {...(at < typed.length - 1 && { onDown: () => move(at, 1) })}
            onRemove={() => remove(at)}
          />
        ))}
        {submit.error && <ErrorNotice error={submit.error} />}
        {!isFixed && (
          <div class="row">
            <Button disabled={!isChanged || rules === undefined || submit.isBusy} onClick={save}>
              Save rules
            </Button>
            {isChanged && (
              <Button look="quiet" onClick={() => setTyped(saved.rules.map(draftOf))}>
                Discard changes
              </Button>
            )}
            <span class="hint" role="status">
              {rules === undefined ? 'Correct the settings first.' : isChanged ? 'There are unsaved changes.' : ''}
            </span>
          </div>
        )}
      </Section>
      <Preview rules={rules} isSaved={!isChanged} />
    </>
  )
}

const roleOptions = [{ value: '', label: 'every role' }, ...roles.map((role) => ({ value: role, label: role }))]

interface RuleCardProps {
  readonly draft: Draft
  readonly number: number
  readonly isFixed: boolean
  onChange(part: Partial<Draft>): void
  /** Absent = it is the first, or the last. */
  readonly onUp?: () => void
  readonly onDown?: () => void
  onRemove(): void
}

function RuleCard({ draft, number, isFixed, onChange, onUp, onDown, onRemove }: RuleCardProps) {
  const { role, group, settings } = draft
  const who = [role === '' ? '' : role, group === '' ? '' : `group ${group}`].filter(Boolean).join(', ') || 'everyone'
  const isWrong = settingsIn(settings) === undefined
  const attributes = { disabled: isFixed }
  const actions = [
    ...(onUp ? [{ label: 'Up', name: `Move rule ${number} up`, run: onUp }] : []),
    ...(onDown ? [{ label: 'Down', name: `Move rule ${number} down`, run: onDown }] : []),
    { label: 'Remove', name: `Remove rule ${number}`, look: 'danger' as const, run: onRemove },
  ]
  return (
    <section class="card stack" aria-label={`Rule ${number}`}>
      <div class="between">
        <h3>
          Rule {number} <small>for {who}</small>
        </h3>
        {!isFixed && (
          <div class="row">
            <Actions actions={actions} />
          </div>
        )}
      </div>
      <div class="columns">
        <Field
          label="Role"
          value={role}
          options={roleOptions}
          hint="In the workspace of the sign-in."
          attributes={attributes}
          onChange={(value) => onChange({ role: value })}
        />
        <Field
          label="Group"
          value={group}
          hint="As the identity provider names it. Empty = everyone."
          attributes={{ ...attributes, maxLength: 400 }}
          onChange={(value) => onChange({ group: value })}
        />
      </div>
      <Field
        label="Settings"
        kind="lines"
        value={settings}
        hint="A JSON object, as in managed-settings.json."
        error={isWrong ? 'Enter a JSON object: { "cleanupPeriodDays": 7 }.' : undefined}
        attributes={{ ...attributes, class: 'code-area', rows: Math.min(16, Math.max(3, settings.split('\n').length)) }}
        onChange={(value) => onChange({ settings: value })}
      />
    </section>
  )
}

interface PreviewProps {
  /** undefined = they have a mistake. */
  readonly rules: Rule[] | undefined
  readonly isSaved: boolean
}

/** What a role with groups gets, or a person. */
function Preview({ rules, isSaved }: PreviewProps) {
  const [who, choose] = useState('member')
  const [groups, setGroups] = useState('')
  const members = useQuery('members', () => callForAll('listMembers', {}))
  const { nameOf } = useWorkspaces()
  const isRole = roles.some((role) => role === who)
  const options = [
    ...roles.map((role) => ({ value: role, label: `role ${role}` })),
    ...(members.value ?? []).map(({ id, email, role, workspace_id }) => ({
      value: id,
      label: role === 'operator' ? `${email}, operator` : `${email}, ${role} of ${nameOf(workspace_id)}`,
    })),
  ]
  const named = groups
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '')
  const asked = isRole ? { role: who as Role, groups: named } : { member_id: who as `mem_${string}` }
  const body = { ...asked, ...(rules && { rules }) }
  const preview = useQuery(
    rules && `preview ${JSON.stringify(body)}`,
    () => callApi('previewManagedSettings', { body }),
    { keepPrevious: true },
  )
  return (
    <Card title="Preview" note={isSaved ? 'of the saved rules' : 'with unsaved changes'}>
      <div class="columns">
        <Field label="Preview for" value={who} options={options} onChange={choose} />
        {isRole && (
          <CommittedField
            label="In the groups"
            value={groups}
            hint="Separated by commas; empty = in none."
            onChange={setGroups}
          />
        )}
      </div>
      {rules === undefined ? (
        <p class="hint">Correct the settings of the rules to see what they give.</p>
      ) : (
        <QueryView what="the preview" query={preview}>
          {({ settings, groups: known }) => (
            <>
              {!isRole && (
                <p class="hint">
                  {known.length === 0
                    ? 'The identity provider has named no groups of this person.'
                    : `Groups at the last sign-in: ${known.join(', ')}.`}
                </p>
              )}
              {settings === null ? (
                <p role="status">No rule matches: Claude Code gets no managed settings.</p>
              ) : (
                <CodeBlock what="settings" code={JSON.stringify(settings, null, 2)} />
              )}
            </>
          )}
        </QueryView>
      )}
    </Card>
  )
}
