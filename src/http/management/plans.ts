// Handlers of plans: the operator's offers, and the plan of a workspace.

import type { AnswerOf } from '../../api/client.ts'
import { listAnswer } from '../../api/fields.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import { transferMax } from '../../ledger/account.ts'
import { listCredits, periodShown } from '../../ledger/credit.ts'
import { lastPlanPayment, type PlanPayment, readSubscription, type Subscription } from '../../ledger/plan-payments.ts'
import {
  deletePlan,
  listPlans,
  type Plan,
  putPlan,
  readPlan,
  readWorkspacePlan,
  setWorkspacePlan,
  type WorkspacePlan,
  workspacesWith,
} from '../../ledger/plans.ts'
import type { Sql } from '../../store/sql.ts'
import { appendAudit, lockAudit } from '../../tenancy/audit.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { priceOf } from '../payments/subscriptions.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Handlers } from './route.ts'
import { noPayments } from './wallet.ts'

const shownMax = 3

export function planHandlers({ database, ledger, subscriptions }: RouteDependencies) {
  const answerOf = (sql: Sql, id: WorkspaceId) => workspacePlanAnswer(sql, id, subscriptions !== undefined)
  const change = async (sql: Sql, id: WorkspaceId, planId: string | undefined) => {
    const paid = await readSubscription(sql, id)
    if (paid) {
      const message = `This workspace subscribes to \`${paid.planId}\`. Cancel its subscription first (DELETE /api/workspaces/${id}/subscription); when it has ended you can give the workspace a plan.`
      throw invalidRequest(message)
    }
    await setWorkspacePlan(sql, id, planId)
    return await answerOf(sql, id)
  }
  /** A plan that begins now has its credit in the answer. If that fails, the next round begins it. */
  const begin = async (id: WorkspaceId) => {
    await ledger.renewPlans(id)
    return await answerOf(database.sql, id)
  }
  return {
    async listPlans() {
      const plans = await listPlans(database.sql)
      return listAnswer(await Promise.all(plans.map((plan) => planAnswer(database.sql, plan))), undefined)
    },
    putPlan: {
      async write(sql, { plan: id, body, act }) {
        if (!/^[a-z0-9-]{1,40}$/.test(id)) {
          throw invalidRequest('The id of a plan must be a-z, 0-9 and -, at most 40 characters.')
        }
        const { name = id, credit, period, expires_days: expiresDays, price } = body
        checkAmount(credit, 'credit', 1n)
        checkAmount(price, 'price', 0n)
        const plan = { id, name, credit, period, expiresDays: expiresDays ?? undefined, price: price ?? undefined }
        await putPlan(sql, plan, act.at)
        const answer = await planAnswer(sql, plan)
        const { workspaces: _, ...details } = answer
        await appendAudit(sql, { ...act, action: 'plan.set', object: id, details })
        return answer
      },
    },
    deletePlan: {
      async write(sql, { plan: id, act }) {
        // Before the checks, here and where a workspace gets a plan: the second of two calls finds what the first has done.
        await lockAudit(sql)
        const users = await workspacesWith(sql, id)
        if (users.length > 0) {
          const more = users.length > shownMax ? ` and ${users.length - shownMax} more` : ''
          throw invalidRequest(
            `The plan \`${id}\` belongs to ${users.slice(0, shownMax).join(', ')}${more}. Give these workspaces another plan or none, and delete it after their current period.`,
          )
        }
        if (!(await deletePlan(sql, id))) throw noPlan(id)
        await appendAudit(sql, { ...act, action: 'plan.delete', object: id })
      },
    },
    getWorkspacePlan: async ({ id }) => await answerOf(database.sql, id),
    putWorkspacePlan: {
      async write(sql, { id, body: { plan }, act }) {
        await lockAudit(sql)
        if (!(await readPlan(sql, plan))) throw noPlan(plan)
        const answer = await change(sql, id, plan)
        await appendAudit(sql, { ...act, action: 'workspace.plan', object: id, details: { plan } })
        return answer
      },
      afterCommit: ({ id }) => begin(id),
    },
    endWorkspacePlan: {
      async write(sql, { id, act }) {
        await getWorkspace(sql, id)
        const answer = await change(sql, id, undefined)
        await appendAudit(sql, { ...act, action: 'workspace.plan', object: id, details: { plan: null } })
        return answer
      },
    },
    // Not `write`s: a transaction must not wait for another server.
    async subscribePlan({ id, body: { plan: planId }, act }) {
      if (!subscriptions) throw noPayments()
      const plan = await readPlan(database.sql, planId)
      if (!plan) throw noPlan(planId)
      const answer = await subscriptions.choose(id, plan, act.requestId)
      const details = { plan: planId, begins: answer.url === null ? 'with the next payment' : 'when it is paid' }
      await database.transaction((sql) => appendAudit(sql, { ...act, action: 'plan.subscribe', object: id, details }))
      return answer
    },
    async cancelSubscription({ id, act }) {
      if (!subscriptions) throw noPayments()
      await subscriptions.cancel(id, act.requestId)
      await database.transaction((sql) => appendAudit(sql, { ...act, action: 'plan.cancel', object: id }))
      return await answerOf(database.sql, id)
    },
  } satisfies Partial<Handlers>
}

function checkAmount(amount: Nano | null | undefined, field: string, least: bigint): void {
  if (amount == null || (amount >= least && amount <= transferMax)) return
  const range = least > 0n ? `more than 0 and at most ${formatUsd(transferMax)}` : `at most ${formatUsd(transferMax)}`
  throw invalidRequest(`\`${field}\` must be ${range} (USD).`, field)
}

function noPlan(id: string): Failure {
  return new Failure('NOT_FOUND', `There is no plan \`${id.slice(0, 100)}\`. GET /api/plans lists them.`)
}

async function planAnswer(sql: Sql, plan: Plan): Promise<AnswerOf<'putPlan'>> {
  return { ...offerAnswer(plan), workspaces: [...(await workspacesWith(sql, plan.id))] }
}

function offerAnswer({
  id,
  name,
  credit,
  period,
  expiresDays,
  price,
}: Plan): AnswerOf<'getWorkspacePlan'>['offers'][number] {
  return {
    ...{ id, name, credit: formatUsd(credit), period, expires_days: expiresDays ?? null },
    price: price === undefined ? null : formatUsd(price),
  }
}

/** `isPaidHere`: workspaces can subscribe to plans. */
export async function workspacePlanAnswer(
  sql: Sql,
  id: WorkspaceId,
  isPaidHere: boolean,
): Promise<AnswerOf<'getWorkspacePlan'>> {
  const paid = await readSubscription(sql, id)
  const own = paid ? await paidPlan(sql, paid) : await readWorkspacePlan(sql, id)
  const credits = await listCredits(sql, id)
  const plans = await listPlans(sql)
  const given = plans.find((plan) => plan.id === own?.nextPlanId)?.credit
  const next = own?.nextPlanId === undefined ? undefined : (paid?.credit ?? given)
  const hasBegun = own?.planId !== undefined
  return {
    plan: own?.planId ?? null,
    starts_at: hasBegun ? isoTime(own.startsAt) : null,
    ends_at: hasBegun ? isoTime(own.endsAt) : null,
    next_plan: own?.nextPlanId ?? null,
    next_credit: next === undefined ? null : formatUsd(next),
    subscription: paid
      ? { plan: paid.planId, price: formatUsd(paid.price), state: paid.state, cancelled: paid.isEnding }
      : null,
    offers: isPaidHere ? plans.filter((plan) => priceOf(plan) !== undefined).map(offerAnswer) : [],
    credits: credits.map(({ id: credit, planId, window, granted, remaining, expiresAt }) => ({
      ...{ id: credit, plan: planId, period: periodShown(window) },
      ...{ granted: formatUsd(granted), remaining: formatUsd(remaining), expires_at: isoTime(expiresAt) },
    })),
  }
}

/** In the export of a workspace. */
export function planPaymentAnswer({ id, planId, paid, credit, startsAt, endsAt, createdAt }: PlanPayment) {
  return {
    ...{ id, plan: planId, paid: formatUsd(paid), credit: formatUsd(credit) },
    ...{ starts_at: isoTime(startsAt), ends_at: isoTime(endsAt), created_at: isoTime(createdAt) },
  }
}

/** As a plan that the operator gave. The period is the one that was paid last. */
async function paidPlan(sql: Sql, { workspaceId, planId, isEnding }: Subscription): Promise<WorkspacePlan> {
  const { planId: current, startsAt = 0, endsAt = 0 } = (await lastPlanPayment(sql, workspaceId)) ?? {}
  return { planId: current, startsAt, endsAt, nextPlanId: isEnding ? undefined : planId }
}
