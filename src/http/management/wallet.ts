// Handlers of the wallet: reading it, top-ups, corrections and card payments. A correction is a new transfer with a
// reason; existing transfers never change.

import type { AnswerOf } from '../../api/client.ts'
import { fileTypeOf, listAnswer } from '../../api/fields.ts'
import { checkoutSchema, paymentSchema, receiptSchema, refundSchema } from '../../api/wallet.ts'
import { isoTime } from '../../kernel/clock.ts'
import { assert, Failure } from '../../kernel/failure.ts'
import type { RefundId, WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd, type Nano, zeroNano } from '../../kernel/money.ts'
import type { Insufficient } from '../../ledger/account.ts'
import { creditOf } from '../../ledger/credit.ts'
import type { Correction } from '../../ledger/fund.ts'
import { readStatement, signedAmount } from '../../ledger/statement.ts'
import { listFundings } from '../../ledger/transfer.ts'
import type { Sql } from '../../store/sql.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import { notFound } from '../../tenancy/management.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { type CsvValue, csvLine } from '../../wire/csv.ts'
import { findPayment, listPayments } from '../payments/payments.ts'
import type { CheckoutSession } from '../payments/stripe-checkout.ts'
import { answerAs, given, pageAnswer, pageOf, transferAnswer, walletAnswer } from './answers.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Call, Handlers } from './route.ts'
import { auditMove, digestOf, moveFailure, runWrite, tooLittleAvailable } from './writes.ts'

export function walletHandlers(deps: RouteDependencies) {
  const { database, ledger } = deps
  return {
    async getWallet({ id }) {
      return walletAnswer(await ledger.wallet(id), await creditOf(database.sql, id))
    },
    async topUp({ id, body: { amount, reference }, act, idempotencyKey }) {
      const outcome = await ledger.fund({
        workspaceId: id,
        amount,
        kind: 'topup',
        ...given({ reference, idempotencyKey }),
      })
      if (outcome.kind !== 'funded') throw moveFailure(outcome, amount, { done: 'credited', does: 'credits' })
      const details = { amount: formatUsd(outcome.transfer.amount) }
      await auditMove(deps, { ...act, action: 'wallet.topup', object: id, details }, outcome)
      return { id: outcome.transfer.id, amount: formatUsd(amount), balance: formatUsd(outcome.posted) }
    },
    async correctWallet({ id, body: { amount, direction, reason }, act, idempotencyKey }) {
      const correction: Correction = { workspaceId: id, amount, direction, reason, ...given({ idempotencyKey }) }
      const outcome = await ledger.correct(correction)
      if (outcome.kind === 'insufficient') throw cannotTake(outcome, amount)
      if (outcome.kind !== 'corrected') throw moveFailure(outcome, amount, { done: 'corrected', does: 'corrects' })
      const details = { direction, amount: formatUsd(amount), reason }
      await auditMove(deps, { ...act, action: 'wallet.correct', object: id, details }, outcome)
      const balance = formatUsd(outcome.posted)
      return { id: outcome.transfer.id, amount: details.amount, direction, balance }
    },
    // Not a `write`: a transaction must not wait for another server.
    createCheckout: (call) => startCheckout(deps, call),
    async listTransfers({ id, query }) {
      const { transfers, nextCursor } = await ledger.transfers(id, { ...pageOf(query), ...given({ kind: query.kind }) })
      return pageAnswer({ items: transfers, nextCursor }, (transfer) => transferAnswer(transfer, id))
    },
    getStatement: async ({ id, query, act }) => await statementOf(deps, id, query.month, act.at),
    exportStatement: {
      async download({ id, query, act }) {
        const statement = await statementOf(deps, id, query.month, act.at)
        return {
          type: fileTypeOf.csv,
          name: `statement-${id}-${statement.month}.csv`,
          pieces: statementPieces(statement),
        }
      },
    },
    async listReceipts({ id }) {
      const { name } = await getWorkspace(database.sql, id)
      const topUps = (await listFundings(database.sql, id)).filter(({ kind }) => kind === 'topup')
      return listAnswer(topUps.map((topUp) => receiptAnswer({ ...topUp, workspaceId: id, workspaceName: name })))
    },
    ...paymentHandlers(deps),
  } satisfies Partial<Handlers>
}

function paymentHandlers(deps: RouteDependencies) {
  const { database, checkout, autoTopUps, refunds } = deps
  const settingsOf = async (sql: Sql, id: WorkspaceId): Promise<AnswerOf<'getPaymentSettings'>> => {
    const state = await autoTopUps?.read(sql, id)
    const { min, max } = autoTopUps?.bounds() ?? { min: zeroNano, max: zeroNano }
    return {
      available: checkout !== undefined,
      min: formatUsd(min),
      max: formatUsd(max),
      card: state?.card ?? null,
      auto_topup: {
        enabled: state?.isOn ?? false,
        threshold: formatUsd(state?.threshold ?? zeroNano),
        amount: formatUsd(state?.amount ?? zeroNano),
        monthly_max: formatUsd(state?.monthMax ?? zeroNano),
        spent_this_month: formatUsd(state?.spentThisMonth ?? zeroNano),
        failures: state?.failures ?? 0,
        stopped: state?.stopped ?? null,
      },
    }
  }
  return {
    async getPaymentSettings({ id }) {
      return await settingsOf(database.sql, id)
    },
    async listPayments({ id, query }) {
      const { limit, cursor } = pageOf(query)
      const page = { workspaceId: id, limit: limit + 1, ...given({ cursor }) }
      const rows = await listPayments(database.sql, page)
      const items = rows.slice(0, limit)
      return listAnswer(items.map(paymentAnswer), rows.length > limit ? items.at(-1)?.id : undefined)
    },
    putAutoTopUp: {
      async write(sql, { id, body: { threshold, amount, monthly_max: monthMax }, act }) {
        if (!autoTopUps) throw noPayments()
        await autoTopUps.turnOn(sql, id, { threshold, amount, monthMax })
        const details = {
          threshold: formatUsd(threshold),
          amount: formatUsd(amount),
          monthly_max: formatUsd(monthMax),
        }
        const answer = await settingsOf(sql, id)
        await appendAudit(sql, { ...act, action: 'auto_topup.on', object: id, details })
        return answer
      },
    },
    stopAutoTopUp: {
      async write(sql, { id, act }) {
        if (!autoTopUps) throw noPayments()
        await autoTopUps.turnOff(sql, id)
        await appendAudit(sql, { ...act, action: 'auto_topup.off', object: id })
      },
    },
    async refundPayment({ id, body: { amount, reason }, act, idempotencyKey: key }) {
      if (!(await findPayment(database.sql, id))) throw notFound('payment', id)
      if (!refunds) throw noPayments()
      const bodySha256 = digestOf([String(amount), reason])
      const scope = `api:/api/payments/${id}/refunds`
      const request = key === undefined ? undefined : { scope, key, bodySha256, requestId: act.requestId, at: act.at }
      const { body } = await runWrite(deps, request, async (sql) => {
        const row = await refunds.begin(sql, id, { amount, reason })
        const details = { refund: row.id, amount: formatUsd(row.amount), reason }
        await appendAudit(sql, { ...act, action: 'payment.refund', object: id, details })
        return { status: 201, body: row.id }
      })
      // A repeated request continues the refund of the first.
      const refund = await refunds.run(body as RefundId)
      return refundAnswer(refund)
    },
  } satisfies Partial<Handlers>
}

const receiptAnswer = answerAs(receiptSchema)
const paymentAnswer = answerAs(paymentSchema)
const refundAnswer = answerAs(refundSchema)

export function noPayments(): Failure {
  return new Failure(
    'NOT_FOUND',
    'This gateway takes no payments. Set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET and restart it; see docs/operate/payments.md.',
  )
}

async function statementOf(
  { database }: RouteDependencies,
  id: WorkspaceId,
  wanted: string | undefined,
  now: number,
): Promise<AnswerOf<'getStatement'>> {
  const { name } = await getWorkspace(database.sql, id)
  const month = wanted ?? isoTime(now).slice(0, 7)
  const statement = await readStatement(database, id, month)
  assert(statement, 'the form of the month was checked')
  const { from, until, opening, closing, fundings, charges } = statement
  return {
    ...{ workspace_id: id, workspace_name: name, month, from: isoTime(from), until: isoTime(until) },
    ...{ is_final: until <= now, opening_balance: formatUsd(opening), closing_balance: formatUsd(closing) },
    fundings: fundings.map((funding) => ({
      ...{ id: funding.id, kind: funding.kind as AnswerOf<'getStatement'>['fundings'][number]['kind'] },
      ...{ amount: formatUsd(signedAmount(funding, id) as Nano), reference: funding.reference ?? null },
      ...{ debit_account: funding.debitAccount, credit_account: funding.creditAccount },
      created_at: isoTime(funding.createdAt),
    })),
    charges: charges.map(({ model, requests, amount, planCredit }) => ({
      ...{ model, requests, amount: formatUsd(amount), plan_credit: formatUsd(planCredit) },
    })),
  }
}

/** Amounts are signed, so that the first row and all that follow add up to the last. */
async function* statementPieces(statement: AnswerOf<'getStatement'>): AsyncGenerator<string> {
  const { from, until, opening_balance, closing_balance, fundings, charges } = statement
  const rows: (readonly CsvValue[])[] = [
    ['kind', 'date', 'description', 'requests', 'amount'],
    ['opening balance', from.slice(0, 10), null, null],
  ]
  const amounts = [opening_balance]
  for (const { kind, created_at, reference, amount } of fundings) {
    rows.push([kind, created_at.slice(0, 10), reference, null])
    amounts.push(amount)
  }
  for (const { model, requests, amount } of charges) {
    rows.push(['charges', null, model, requests])
    amounts.push(/^0\.0*$/.test(amount) ? amount : `-${amount}`)
  }
  rows.push(['closing balance', until.slice(0, 10), null, null])
  amounts.push(closing_balance)
  const [head = [], ...lines] = rows
  yield `${csvLine(head)}\r\n`
  // A signed amount is a number, not a formula, and is written as it is.
  for (const [at, line] of lines.entries()) yield `${csvLine(line)},${amounts[at]}\r\n`
}

function cannotTake(outcome: Insufficient, amount: Nano): Failure {
  const [posted, held] = [formatUsd(outcome.posted), formatUsd(outcome.held)]
  const of = outcome.held > 0n ? `: the balance is $${posted}, and running requests hold $${held}` : ''
  return tooLittleAvailable(outcome, amount, (available) => {
    const rest = `A wallet never goes below zero; take at most $${available}.`
    return `Cannot take $${formatUsd(amount)}; $${available} is available${of}. ${rest}`
  })
}

/** Thrown to roll back the lookup of an earlier answer. */
const notAnswered = Symbol('no earlier request had this Idempotency-Key')

/** Nothing is credited here: the webhook does that once the payment was made. */
async function startCheckout(
  deps: RouteDependencies,
  { id, body: { amount, save_card: savesCard }, act, idempotencyKey: key }: Call<'createCheckout'>,
): Promise<CheckoutSession> {
  const { checkout } = deps
  if (!checkout) throw noPayments()
  const start = () => checkout(id, { amount, savesCard, requestId: act.requestId })
  if (key === undefined) return await start()
  const bodySha256 = digestOf([String(amount), savesCard ?? false])
  const scope = `api:/api/workspaces/${id}/checkouts`
  const request = { scope, key, bodySha256, requestId: act.requestId, at: act.at }
  const rollBack = async () => {
    throw notAnswered
  }
  const earlier = await runWrite(deps, request, rollBack).catch((thrown) => {
    if (thrown !== notAnswered) throw thrown
  })
  if (earlier) return storedSession(earlier)
  const session = await start()
  // The same request on another replica may have been faster; then its session counts and this one expires unpaid.
  const made = async () => ({ status: 201, body: JSON.stringify(session) })
  return storedSession(await runWrite(deps, request, made))
}

function storedSession({ body }: { readonly body: string }): CheckoutSession {
  return checkoutSchema.parse(JSON.parse(body))
}
