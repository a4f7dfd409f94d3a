/** @jsxImportSource preact */
// Alert rules: what raises an alert, from which threshold on, and who gets it. A workspace has its own; the page of all
// workspaces has those of the installation.

import { percentRuleKinds, type RuleKind } from '../../../kernel/alert.ts'
import { amountText, countOf } from '../../catalog/format.ts'
import { rulesQuery } from '../../first-calls.ts'
import { callApi, callForAll, type ItemOf } from '../api.ts'
import { Checkbox } from '../form.tsx'
import { useList, useQuery } from '../hooks.ts'
import type { Column } from '../table.tsx'
import { actionsColumn, emptyState, ListSection } from './components.tsx'
import { FormDialog, useOverlay } from './overlay.tsx'

type Rule = ItemOf<'listAlertRules'>
type Webhook = ItemOf<'listWebhooks'>

const ruleLabels: Readonly<Record<RuleKind, string>> = {
  'balance.low': 'Low balance',
  'limit.reached': 'Spend limit',
  'topup.failed': 'Automatic top-up failed',
  'plan.unpaid': 'Plan not paid',
  'credit.expiring': 'Credit expires soon',
  'provider.down': 'Provider down, or works again',
  'provider.stray': 'Stray response of a provider',
  'price.changed': 'Prices changed',
  'bill.differs': 'A bill differs',
}

const roleLabels = { operator: 'Operators', admin: 'Admins', member: 'Members', viewer: 'Viewers' } as const

interface Scope {
  readonly value: string
  readonly label: string
}

/** What a limit rule can watch: every limit of the workspace, or those of one key or project. */
async function readScopes(workspaceId: string): Promise<readonly Scope[]> {
  const [projects, keys] = await Promise.all([
    callForAll('listProjects', { id: workspaceId }),
    callForAll('listKeys', { query: { workspace_id: workspaceId } }),
  ])
  return [
    { value: workspaceId, label: 'the workspace' },
    ...projects.map(({ id, name }) => ({ value: id, label: `project ${name}` })),
    ...keys.filter(({ status }) => status === 'active').map(({ id, name }) => ({ value: id, label: `key ${name}` })),
  ]
}

export interface AlertRulesProps {
  /** undefined = the installation. */
  readonly workspace: { readonly id: string; readonly name: string } | undefined
  readonly webhooks: readonly Webhook[]
}

export function AlertRules({ workspace, webhooks }: AlertRulesProps) {
  const id = workspace?.id
  const list = useList('listAlertRules', { query: rulesQuery(id) })
  const scopes = useQuery(id === undefined ? undefined : `scopes ${id}`, () => readScopes(id ?? '')).value ?? []
  const { open, ask } = useOverlay()
  const own = webhooks.filter(({ workspace_id: place }) => place === (id ?? null))
  const edit = (rule?: Rule) =>
    open(<RuleDialog workspace={workspace} rule={rule} scopes={scopes} webhooks={own} onDone={list.reload} />)
  const remove = (rule: Rule) =>
    ask({
      title: 'Delete this rule?',
      label: 'Delete rule',
      cancelLabel: 'Keep rule',
      intro: `${conditionText(rule, scopes)}: nobody is told by this rule any more.`,
      send: () => callApi('deleteAlertRule', { id: rule.id }),
      onDone: list.reload,
    })
  const columns: readonly Column<Rule>[] = [
    { label: 'Alert when', show: (rule) => <span class="row-name">{conditionText(rule, scopes)}</span> },
    {
      label: 'Goes to',
      show: (rule) => recipientsOf(rule, own).join(', ') || <span class="muted">the list above only</span>,
    },
    actionsColumn((rule) => {
      const name = conditionText(rule, scopes)
      return [
        { label: 'Edit', name: `Edit: ${name}`, run: () => edit(rule) },
        { label: 'Delete', name: `Delete: ${name}`, look: 'danger', run: () => remove(rule) },
      ]
    }),
  ]
  return (
    <ListSection
      title="Rules"
      action={{ label: 'New rule', look: 'primary', run: () => edit() }}
      what="rules"
      list={list}
      caption="Alert rules"
      columns={columns}
      empty={emptyState('No rules', 'Without a rule, no balance and no spend limit raises an alert.')}
    >
      {list.items.some(({ has_mail: hasMail, roles, emails }) => !hasMail && roles.length + emails.length > 0) && (
        <p class="hint">No mail server is configured, so nobody gets e-mails. Webhooks work.</p>
      )}
    </ListSection>
  )
}

/** `Balance below $20.00`, `Spend limit of key ci at 80 %` */
function conditionText({ kind, below, percents, days, scope_id: scope }: Rule, scopes: readonly Scope[]): string {
  if (below !== null) return `Balance below ${amountText(below)}`
  if (days != null) return `Credit expires in ${countOf(days, 'day')}`
  if (percents === null) return ruleLabels[kind]
  const last = percents.at(-1)
  const steps = percents.length > 1 ? `${percents.slice(0, -1).join(', ')} and ${last}` : String(last)
  if (kind === 'bill.differs') return `A bill differs by ${steps}\u00a0%`
  const of =
    scope === null
      ? 'Every spend limit'
      : `Spend limit of ${scopes.find((each) => each.value === scope)?.label ?? scope}`
  return `${of} at ${steps}\u00a0%`
}

function recipientsOf({ roles, emails, webhooks }: Rule, known: readonly Webhook[]): readonly string[] {
  const hosts = known.filter(({ id }) => webhooks.includes(id)).map(hostOf)
  return [...roles.map((role) => roleLabels[role]), ...emails, ...hosts]
}

function hostOf({ url }: Webhook): string {
  return URL.canParse(url) ? new URL(url).host : url
}

interface RuleDialogProps extends AlertRulesProps {
  /** undefined = a new one. */
  readonly rule: Rule | undefined
  readonly scopes: readonly Scope[]
  onDone(): void
}

const workspaceKinds = ['balance.low', 'limit.reached', 'credit.expiring', 'topup.failed', 'plan.unpaid'] as const
const installationKinds = [
  ...workspaceKinds,
  'provider.down',
  'provider.stray',
  'price.changed',
  'bill.differs',
] as const

function RuleDialog({ workspace, rule, scopes, webhooks, onDone }: RuleDialogProps) {
  const kinds = workspace ? workspaceKinds : installationKinds
  const roles = workspace ? (['admin', 'viewer'] as const) : (['operator'] as const)
  const place = workspace ? `for workspace ${workspace.name}` : 'for all workspaces'
  return (
    <FormDialog
      title={rule ? 'Change the rule' : `New rule ${place}`}
      label={rule ? 'Save rule' : 'Create rule'}
      initial={{
        kind: rule?.kind ?? 'balance.low',
        below: rule?.below ?? '',
        percents: rule?.percents?.join(', ') ?? (rule ? '' : '80, 100'),
        days: String(rule?.days ?? 3),
        scope_id: rule?.scope_id ?? '',
        roles: (rule?.roles ?? roles.slice(0, 1)).join(),
        emails: rule?.emails.join('\n') ?? '',
        webhooks: rule?.webhooks.join() ?? '',
      }}
      rows={[
        {
          name: 'kind',
          label: 'Alert when',
          options: kinds.map((kind) => ({ value: kind, label: ruleLabels[kind] })),
          isRequired: true,
          isShown: () => rule === undefined,
        },
        {
          name: 'below',
          label: 'Balance below, USD',
          kind: 'decimal',
          hint: 'Raised once after each top-up.',
          attributes: { required: true, placeholder: '20.00' },
          isShown: ({ kind }) => kind === 'balance.low',
        },
        {
          name: 'percents',
          label: workspace ? 'Percent of the limit' : 'Percent of the limit or the bill',
          hint: 'Whole numbers from 1 to 100. Of those that are reached, the highest one raises the alert.',
          attributes: {
            required: true,
            placeholder: '80, 100',
            pattern: '\\s*[0-9]+\\s*%?(\\s*,\\s*[0-9]+\\s*%?)*\\s*',
            title: 'Enter percentages separated by commas: 80, 100.',
          },
          isShown: ({ kind }) => hasPercents(kind),
        },
        {
          name: 'days',
          label: 'Days before credit expires',
          kind: 'whole',
          hint: 'Raised once for each credit of a plan that is not used up, unless it lives no longer anyway.',
          attributes: { required: true, placeholder: '3' },
          isShown: ({ kind }) => kind === 'credit.expiring',
        },
        {
          name: 'scope_id',
          label: 'Whose limits',
          options: [{ value: '', label: 'All keys, projects and the workspace' }, ...scopes],
          isShown: ({ kind }) => kind === 'limit.reached' && workspace !== undefined,
        },
        {
          name: 'emails',
          label: 'Further e-mail addresses',
          kind: 'lines',
          hint: workspace
            ? 'One per line: people of this workspace, or addresses in domains that the operator allows.'
            : 'One per line.',
        },
        { name: 'roles', label: 'Roles', kind: 'lines', isShown: () => false },
        { name: 'webhooks', label: 'Webhooks', kind: 'lines', isShown: () => false },
      ]}
      send={(
        { kind, below, percents, days, scope_id: scope, emails = [], roles: to = [], webhooks: hooks = [] },
        options,
      ) => {
        const thresholds = {
          ...(kind === 'balance.low' && { below }),
          ...(hasPercents(kind) && { percents: percentsOf(percents ?? '') }),
          ...(kind === 'credit.expiring' && { days }),
          ...(kind === 'limit.reached' && { scope_id: scope || null }),
        }
        const body = { ...thresholds, emails, roles: to as Rule['roles'], webhooks: hooks }
        if (rule) return callApi('updateAlertRule', { id: rule.id, body }, options)
        const created = { ...body, kind, workspace_id: (workspace?.id ?? null) as `ws_${string}` | null }
        return callApi('createAlertRule', { body: created }, options)
      }}
      onDone={onDone}
    >
      {(values, change) => {
        const ticks = (name: 'roles' | 'webhooks', all: readonly Scope[]) =>
          all.map(({ value, label }) => {
            const chosen = (values[name] ?? '').split(',').filter(Boolean)
            return (
              <Checkbox
                key={value}
                label={label}
                isChecked={chosen.includes(value)}
                onChange={(isChecked) =>
                  change({ [name]: (isChecked ? [...chosen, value] : chosen.filter((each) => each !== value)).join() })
                }
              />
            )
          })
        return (
          <fieldset class="stack tight">
            <legend>Who gets it</legend>
            {ticks(
              'roles',
              roles.map((role) => ({ value: role, label: `${roleLabels[role]}, by e-mail` })),
            )}
            {ticks(
              'webhooks',
              webhooks.map((hook) => ({ value: hook.id, label: `Webhook ${hostOf(hook)}` })),
            )}
            <p class="hint">The list of alerts has it in any case.</p>
          </fieldset>
        )
      }}
    </FormDialog>
  )
}

/** `80, 100 %` → 80 and 100. */
function hasPercents(kind: string | undefined): boolean {
  return [...percentRuleKinds].some((each) => each === kind)
}

function percentsOf(text: string): number[] {
  return text.split(',').map((part) => Number(part.replace('%', '').trim()))
}
