// `tollgate plans`: credit for every day, week or month that expires, and the plan of a workspace.

import type { AnswerOf } from '../../api/client.ts'
import type { CommandDefinition } from '../command.ts'
import { workspaceTitle } from '../lookup.ts'
import { answerCommand, listCommand } from '../operation-command.ts'
import { cleanText, readAmount, readCount, renderFacts, renderTable, shownTime, shownUsd } from '../values.ts'

type WorkspacePlan = AnswerOf<'getWorkspacePlan'>

const workspace = { name: 'WORKSPACE', isOptional: true, prefix: 'ws_', parameter: 'id', find: 'workspace' } as const
const plan = { name: 'PLAN', parameter: 'plan' } as const
const listedBy = 'tollgate plans'

export const planCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['plans', 'list'],
    isDefault: true,
    summary: 'lists the plans',
    examples: ['tollgate plans', 'tollgate plans list --json'],
    operation: 'listPlans',
    columns: [
      'id',
      'name',
      ['CREDIT', ({ credit, period }) => `${shownUsd(credit)} a ${period}`, 'right'],
      ['EXPIRES', ({ expires_days: days, period }) => shownExpiry(days, period)],
      ['PRICE', ({ price, period }) => (price === null ? undefined : `${shownUsd(price)} a ${period}`), 'right'],
      ['WORKSPACES', ({ workspaces }) => workspaces.length, 'right'],
    ],
    whenEmpty: () => 'There are no plans. Next: tollgate plans put pro --credit 20 --period month\n',
  }),
  answerCommand({
    words: ['plans', 'put'],
    summary: 'creates a plan, or changes it for the next period of every workspace that has it',
    details: `A plan grants credit in every period of the calendar (UTC). Credit is spent before other money, the first to expire
first. With payments configured, admins of workspaces can subscribe to a plan with a price; otherwise the price is shown only.`,
    examples: [
      'tollgate plans put pro --credit 20 --period month --price 15',
      'tollgate plans put daily --credit 1 --period day --expires-days 7',
    ],
    operation: 'putPlan',
    arguments: [plan],
    options: {
      credit: { value: 'USD', help: 'granted in every period', field: 'credit', read: readAmount, isRequired: true },
      period: { value: 'day|week|month', help: 'how often', field: 'period', isRequired: true },
      'expires-days': {
        value: 'DAYS',
        help: 'credit expires so many days after it was granted (at the end of its period)',
        field: 'expires_days',
        read: readCount,
      },
      price: { value: 'USD', help: 'what you charge for a period', field: 'price', read: readAmount },
      name: { value: 'TEXT', help: 'a name for people (the id)', field: 'name' },
    },
    text: ({ id, credit, period, expires_days: days }) =>
      `Plan ${id}: ${shownUsd(credit)} a ${period}, which expires ${shownExpiry(days, period)}\n`,
  }),
  answerCommand({
    words: ['plans', 'delete'],
    summary: 'deletes a plan that no workspace has',
    examples: ['tollgate plans delete pro --yes'],
    operation: 'deletePlan',
    arguments: [plan],
    confirm: ({ first }) => `Delete the plan ${cleanText(first)}?`,
    listedBy,
    text: (_answer, { first }) => `Plan ${cleanText(first)} deleted. Credit that it granted stays until it expires.\n`,
  }),
  answerCommand({
    words: ['plans', 'show'],
    summary: 'shows the plan of a workspace and what remains of its credit',
    examples: ['tollgate plans show', 'tollgate plans show acme --json'],
    operation: 'getWorkspacePlan',
    arguments: [workspace],
    async text(answer, { api, terminal }, { id = '' }) {
      const rows = answer.credits.length === 0 ? '' : renderTable(creditColumns, answer.credits, terminal)
      return `${await workspaceTitle(api, id)}\n${renderFacts(planFacts(answer))}${rows}`
    },
  }),
  answerCommand({
    words: ['plans', 'choose'],
    summary: 'gives a workspace a plan: at once if it has none, otherwise from its next period on',
    examples: ['tollgate plans choose pro acme'],
    operation: 'putWorkspacePlan',
    arguments: [{ name: 'PLAN', field: 'plan' }, workspace],
    listedBy,
    text: async (answer, { api }, { id = '' }) => `${await workspaceTitle(api, id)}\n${renderFacts(planFacts(answer))}`,
  }),
  answerCommand({
    words: ['plans', 'end'],
    summary: 'ends the plan of a workspace with its current period',
    examples: ['tollgate plans end acme --yes'],
    operation: 'endWorkspacePlan',
    arguments: [workspace],
    confirm: () => 'End the plan of this workspace with its current period?',
    text: async (answer, { api }, { id = '' }) => `${await workspaceTitle(api, id)}\n${renderFacts(planFacts(answer))}`,
  }),
  answerCommand({
    words: ['plans', 'subscribe'],
    summary: 'starts a subscription to a plan with a price, or changes it from the next payment on',
    examples: ['tollgate plans subscribe pro', 'tollgate plans subscribe max acme'],
    operation: 'subscribePlan',
    arguments: [{ name: 'PLAN', field: 'plan' }, workspace],
    text: ({ url }) =>
      url === null ? 'Changed, from the next payment on. Nothing is to be paid now.\n' : `Pay here: ${url}\n`,
  }),
  answerCommand({
    words: ['plans', 'cancel'],
    summary: 'cancels the subscription of a workspace, which ends with the period that is paid',
    examples: ['tollgate plans cancel acme --yes'],
    operation: 'cancelSubscription',
    arguments: [workspace],
    confirm: () => 'Cancel the subscription of this workspace with the period that is paid?',
    text: async (answer, { api }, { id = '' }) => `${await workspaceTitle(api, id)}\n${renderFacts(planFacts(answer))}`,
  }),
]

const creditColumns = [
  ['PERIOD', ({ period }: WorkspacePlan['credits'][number]) => period],
  ['PLAN', ({ plan: id }: WorkspacePlan['credits'][number]) => id],
  ['GRANTED', ({ granted }: WorkspacePlan['credits'][number]) => shownUsd(granted), 'right'],
  ['REMAINING', ({ remaining }: WorkspacePlan['credits'][number]) => shownUsd(remaining), 'right'],
  ['EXPIRES (UTC)', ({ expires_at }: WorkspacePlan['credits'][number]) => shownTime(expires_at)],
] as const

function planFacts({ plan: id, ends_at, next_plan, next_credit, subscription }: WorkspacePlan): [string, string][] {
  const next = next_plan === null ? 'none' : `${next_plan}, ${shownUsd(next_credit)}`
  return [
    ['plan', id ?? 'none'],
    ...(ends_at === null ? [] : [['next period', `${shownTime(ends_at)} UTC: ${next}`] as [string, string]]),
    ...(subscription === null
      ? []
      : [['subscription', `${shownUsd(subscription.price)} a period, ${subscription.state}`] as [string, string]]),
  ]
}

function shownExpiry(days: number | null, period: string): string {
  return days === null ? `at the end of the ${period}` : `after ${days} ${days === 1 ? 'day' : 'days'}`
}
