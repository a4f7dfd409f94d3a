// Handlers of plans: the operator's offers, and the plan of a workspace.

import type { AnswerOf } from '../../api/client.ts'
import { listAnswer } from '../../api/fields.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import { transferMax } from '../../ledger/account.ts'
import { listCredits, periodShown } from '../../ledger/credit.ts'
import {
  deletePlan,
  listPlans,
  type Plan,
  putPlan,
  readWorkspacePlan,
  setWorkspacePlan,
  workspacesWith,
} from '../../ledger/plans.ts'
import type { Sql } from '../../store/sql.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Handlers } from './route.ts'

const shownMax = 3

export function planHandlers({ database, ledger }: RouteDependencies) {
  const change = async (sql: Sql, id: WorkspaceId, planId: string | undefined) => {
    await setWorkspacePlan(sql, id, planId)
    return await workspacePlanAnswer(sql, id)
  }
  /** A plan that begins now has its credit in the answer. If that fails, the next round begins it. */
  const begin = async (id: WorkspaceId) => {
    await ledger.renewPlans(id)
    return await workspacePlanAnswer(database.sql, id)
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
    getWorkspacePlan: async ({ id }) => await workspacePlanAnswer(database.sql, id),
    putWorkspacePlan: {
      async write(sql, { id, body: { plan }, act }) {
        if (!(await listPlans(sql)).some((each) => each.id === plan)) throw noPlan(plan)
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
  const { id, name, credit, period, expiresDays = null, price } = plan
  return {
    ...{ id, name, credit: formatUsd(credit), period, expires_days: expiresDays },
    price: price === undefined ? null : formatUsd(price),
    workspaces: (await workspacesWith(sql, id)).length,
  }
}

export async function workspacePlanAnswer(sql: Sql, id: WorkspaceId): Promise<AnswerOf<'getWorkspacePlan'>> {
  const own = await readWorkspacePlan(sql, id)
  const credits = await listCredits(sql, id)
  const next = (await listPlans(sql)).find((plan) => plan.id === own?.nextPlanId)
  const hasBegun = own?.planId !== undefined
  return {
    plan: own?.planId ?? null,
    starts_at: hasBegun ? isoTime(own.startsAt) : null,
    ends_at: hasBegun ? isoTime(own.endsAt) : null,
    next_plan: own?.nextPlanId ?? null,
    next_credit: next ? formatUsd(next.credit) : null,
    credits: credits.map(({ id: credit, planId, window, granted, remaining, expiresAt }) => ({
      ...{ id: credit, plan: planId, period: periodShown(window) },
      ...{ granted: formatUsd(granted), remaining: formatUsd(remaining), expires_at: isoTime(expiresAt) },
    })),
  }
}
