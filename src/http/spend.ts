// GET /api/oauth/usage: how much of its spend limits a key has used, in the shape that Claude Code reads from a gateway
// (`claude gateway --help` of 2.1.325, 2026-11). It shows the amounts of the active limit beside the percentage from the headers.

import type { Dialect } from '../dialects/dialect.ts'
import { type Clock, isoTime } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import { isRolling } from '../kernel/spend-limit.ts'
import { periodOf, type SpendState, spendState } from '../ledger/budget.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Answer } from '../pipeline/answer.ts'
import { budgetsOf } from '../pipeline/budgets.ts'
import type { ClientRequest } from '../pipeline/client-request.ts'
import { wordsOf } from '../pipeline/spend-refusals.ts'
import { allowsSource, sourceFailure } from '../tenancy/allowlist.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import { jsonAnswer, refuse } from './responses.ts'

export const spendPath = '/api/oauth/usage'

export interface SpendDependencies {
  authenticate(headers: RequestHeaders): Caller | Failure | Promise<Caller | Failure>
  readonly ledger: Pick<Ledger, 'budget'>
  readonly clock: Clock
}

export function createSpendRoute({ authenticate, ledger, clock }: SpendDependencies) {
  return async (request: ClientRequest, surface: Dialect, address: string | undefined): Promise<Answer> => {
    const caller = await authenticate(request.headers)
    if (caller instanceof Failure) return refuse(surface, caller)
    if (!allowsSource(caller, address)) return refuse(surface, sourceFailure(caller, address))
    const budgets = budgetsOf(caller, clock) ?? []
    const states = budgets.map(async (budget) => ({
      ...spendState({ ...budget, ...(await ledger.budget(budget.scopeId, budget.window)) }, clock.now()),
      subject: wordsOf(caller, budget).subject,
      window: isRolling(budget.window) ? budget.window : periodOf(budget.window),
    }))
    return jsonAnswer(renderSpend(await Promise.all(states)), { 'cache-control': 'no-store' })
  }
}

interface ShownState extends SpendState {
  /** Whose limit it is: `Person ada@example.com`. */
  readonly subject: string
  /** `day`, `5h` */
  readonly window: string
}

function renderSpend(states: readonly ShownState[]): object {
  const sorted = states.toSorted((a, b) => b.used - a.used)
  const [tightest] = sorted
  if (tightest === undefined) return { limits: [] }
  return {
    extra_usage: {
      is_enabled: true,
      monthly_limit: cents(tightest.limit),
      used_credits: cents(tightest.spent),
      utilization: percent(tightest),
      currency: 'USD',
    },
    limits: sorted.map((state) => ({
      kind: 'spend',
      group: state.period,
      // Where Anthropic's own rows say what they are for.
      scope: { surface: { display_name: state.subject } },
      // Ours: Claude Code passes over them.
      ...{ window: state.window, limit: formatUsd(state.limit), spent: formatUsd(state.spent) },
      percent: percent(state),
      resets_at: isoTime(state.resetsAt),
      severity: state.used > 0.95 ? 'critical' : state.used > 0.75 ? 'warning' : 'normal',
      is_active: state === tightest,
    })),
  }
}

function percent({ used }: SpendState): number {
  return Math.floor(used * 100)
}

function cents(amount: Nano): number {
  return Number(amount / 10_000_000n)
}
