// The books of a simulated world once nothing moves any more: every row is explained by something that was asked for, every
// answer that was given has its row, and the sums are those of plain arithmetic.

import type { WorkspaceId } from '../../src/kernel/ids.ts'
import { verify } from '../../src/ledger/verify.ts'
import type { BookRows, TransferRow } from './backend.ts'
import type { RequestModel } from './request-model.ts'
import { periodsMax, planPart, type World } from './world.ts'

export async function checkBooks(world: World, what: 'dead processes' | 'everything'): Promise<void> {
  const rows = await world.scheduler.alone('reads the books', () => world.backend.readBooks())
  checkDead(world, rows)
  if (what === 'dead processes') return
  checkCharges(world, rows)
  checkFundings(world, rows)
  world.corrections.check(rows.transfers)
  checkPlans(world, rows)
  checkSums(world, rows)
  checkRequestSums(world, rows)
  checkBudgets(world, rows)
  await checkWallets(world, rows)
  const [live] = world.processes
  const { findings } = live ? await world.scheduler.alone('verifies', () => verify(live.database)) : { findings: [] }
  for (const { check, id, detail } of findings) world.oracle.violate(`verify: ${check}: ${id}: ${detail}`)
}

/** M5 */
function checkDead({ processes, oracle }: World, { holds }: BookRows): void {
  const live = new Set(processes.filter(({ isDead }) => !isDead).map(({ name }) => name))
  for (const { request_id: id, state } of holds) {
    const request = oracle.requests.get(id)
    if (state === 'open' && request && !live.has(request.process)) {
      oracle.violate(`M5: ${id} is still held, a minute after its process died`)
    }
  }
}

/** M3, M7, M8 */
function checkCharges({ oracle }: World, { transfers, holds, records }: BookRows): void {
  const charges = Map.groupBy(
    transfers.filter(({ kind }) => kind === 'charge'),
    ({ request_id }) => request_id ?? '',
  )
  const writeoffs = Map.groupBy(
    transfers.filter(({ kind }) => kind === 'writeoff'),
    ({ request_id }) => request_id ?? '',
  )
  const recorded = Map.groupBy(records, ({ object }) => object)
  for (const id of [...charges.keys(), ...writeoffs.keys(), ...recorded.keys()]) {
    if (!oracle.requests.has(id)) oracle.violate(`M3: there is a charge for ${id}, which was not requested`)
  }
  for (const request of oracle.requests.values()) {
    const { id } = request
    const [charge, ...more] = charges.get(id) ?? []
    const [writeoff, ...moreOff] = writeoffs.get(id) ?? []
    if (more.length + moreOff.length > 0) oracle.violate(`M3: ${id} was charged more than once`)
    if ((recorded.get(id)?.length ?? 0) !== (charge ? 1 : 0)) oracle.violate(`M3: ${id} and its record are not one`)
    checkCharge(oracle.violate.bind(oracle), request, charge, writeoff?.amount ?? 0n)
    if (charge && !request.charge) {
      const found = { amount: charge.amount, writtenOff: writeoff?.amount ?? 0n }
      const fault = oracle.chargeFault(request, found)
      if (fault) oracle.violate(fault)
      request.end(found)
    } else if (!charge && request.state !== 'refused') request.end()
  }
  for (const { request_id: id, state } of holds) {
    if (state === 'open') oracle.violate(`M5: ${id} is still held, though everything is over`)
    if ((state === 'settled') !== charges.has(id)) oracle.violate(`M3: the hold of ${id} is ${state}`)
  }
}

function checkCharge(
  violate: (text: string) => void,
  { id, charge: known, state, isUncharged }: RequestModel,
  found: TransferRow | undefined,
  writtenOff: bigint,
): void {
  if (known && !found) violate(`M2: ${id} was reported as charged, and the charge is lost`)
  if (known && found && (known.amount !== found.amount || known.writtenOff !== writtenOff))
    violate(`M3: ${id} was reported with another charge than is stored`)
  if (found && isUncharged) violate(`M3: ${id} was reported as not charged, and was charged`)
  if (!known && found && (state === 'ended' || state === 'refused')) violate(`M3: ${id} had ended, and was charged`)
}

function checkFundings({ fundings, oracle }: World, { transfers }: BookRows): void {
  const made = Map.groupBy(
    transfers.filter(({ kind }) => kind === 'topup' || kind === 'grant'),
    ({ reference }) => reference ?? '',
  )
  for (const [name, rows] of made) {
    const model = fundings.all.get(name)
    if (!model) oracle.violate(`there is a top-up ${name} that was not requested`)
    if (rows.length > 1) oracle.violate(`top-up ${name} was made ${rows.length} times`)
    for (const { id, amount } of rows) {
      if (!model?.amounts.has(amount)) oracle.violate(`top-up ${name} came to ${amount}`)
      if (model?.made && model.made.transferId !== id) oracle.violate(`top-up ${name} is not the one that was reported`)
      fundings.make(name, id, amount)
    }
  }
  for (const [name, model] of fundings.all) {
    if (made.has(name)) continue
    if (model.made) oracle.violate(`M2: top-up ${name} was said to be made, and is lost`)
    fundings.unmade(name)
  }
}

/** Each day granted once, and nothing is left of a day that is over. */
function checkPlans({ oracle, plan, scheduler, workspaces }: World, { transfers, credits }: BookRows): void {
  // Days of replicas are those of the database, whose clock is a real one.
  const now = plan.engine === 'embedded' ? scheduler.now : 0
  const left = credits.filter(({ expires_at, remaining }) => Number(expires_at) < now && remaining > 0n)
  for (const { id, remaining } of left) oracle.violate(`${remaining} of the credit ${id} is left, and has expired`)
  for (const id of workspaces) {
    const wallet = `wallet:${id}`
    const granted = transfers.filter(({ kind, credit_account: to }) => kind === 'plan_credit' && to === wallet)
    const expired = transfers.filter(({ kind, debit_account: from }) => kind === 'expiry' && from === wallet)
    const days = new Set(granted.map(({ reference }) => reference))
    if (days.size !== granted.length || granted.some(({ amount }) => amount !== plan.credit)) {
      oracle.violate(
        `the plan of ${id} granted ${granted.map(({ amount, reference }) => `${amount} for ${reference}`)}`,
      )
    }
    if (plan.credit > 0n && granted.length === 0) oracle.violate(`the plan of ${id} granted nothing`)
    const sumOf = (rows: readonly TransferRow[]) => rows.reduce((sum, { amount }) => sum + amount, 0n)
    const net = sumOf(granted) - sumOf(expired)
    if (net < 0n || net > plan.credit * periodsMax) oracle.violate(`the plan of ${id} left ${net}`)
    oracle.room(wallet).set(planPart, net, net)
  }
}

/** M1 */
function checkSums({ oracle }: World, { transfers, balances }: BookRows): void {
  const sums = new Map<string, bigint>()
  for (const { debit_account, credit_account, amount } of transfers) {
    sums.set(debit_account, (sums.get(debit_account) ?? 0n) - amount)
    sums.set(credit_account, (sums.get(credit_account) ?? 0n) + amount)
  }
  const total = [...sums.values()].reduce((sum, amount) => sum + amount, 0n)
  if (total !== 0n) oracle.violate(`M1: the ledger sums to ${total}`)
  for (const { account_id, posted, held } of balances) {
    if (posted !== (sums.get(account_id) ?? 0n))
      oracle.violate(`M1: ${account_id} says ${posted}, transfers ${sums.get(account_id) ?? 0n}`)
    if (held !== 0n) oracle.violate(`M5: ${account_id} holds ${held}, though everything is over`)
  }
}

/** The sums of the request log are those of its charges. */
function checkRequestSums({ oracle }: World, { records, transfers, sums }: BookRows): void {
  const charged = transfers.filter(({ kind }) => kind === 'charge').reduce((sum, { amount }) => sum + amount, 0n)
  const found = sums.reduce(
    (all, { requests, charge }) => ({ requests: all.requests + requests, charge: all.charge + charge }),
    { requests: 0n, charge: 0n },
  )
  if (found.requests !== BigInt(records.length) || found.charge !== charged) {
    oracle.violate(
      `the sums say ${found.requests} requests and ${found.charge}, there are ${records.length} and ${charged}`,
    )
  }
}

function checkBudgets({ oracle }: World, { budgets, minutes, transfers }: BookRows): void {
  const spent = new Map<string, bigint>()
  for (const { budgets: names, amount } of transfers) {
    for (const charged of names?.split(',') ?? []) {
      // Of a rolling window, without the minute.
      const name = charged.replace(/#\d+$/, '')
      spent.set(name, (spent.get(name) ?? 0n) + amount)
    }
  }
  for (const { name, low, high } of oracle.rooms.values()) {
    if (name.startsWith('wallet:')) continue
    const isOfIt = (row: { scope_id: string; time_window: string }) => `${row.scope_id} ${row.time_window}` === name
    const row = budgets.find(isOfIt)
    const counted = name.endsWith(' 31d') ? minutes.find(isOfIt) : row
    const found = { row: counted?.spent ?? 0n, transfers: spent.get(name) ?? 0n }
    if (found.row !== -low || found.transfers !== -low || low !== high || (row?.held ?? 0n) !== 0n) {
      oracle.violate(
        `budget ${name}: ${found.row} spent, ${row?.held ?? 0n} held, transfers say ${found.transfers}, requests ${-low}`,
      )
    }
  }
}

/** The figure of every live process, of the rows and of the answers is the same. */
async function checkWallets({ oracle, processes, workspaces }: World, { balances }: BookRows): Promise<void> {
  for (const workspaceId of workspaces) {
    const { low, high } = oracle.room(`wallet:${workspaceId}`)
    if (low !== high || low < 0n) oracle.violate(`M4: ${workspaceId} should have ${low} to ${high}`)
    const row = balances.find(({ account_id }) => account_id === `wallet:${workspaceId}`)
    if ((row?.posted ?? 0n) !== low)
      oracle.violate(`M1: ${workspaceId} has ${row?.posted ?? 0n} and should have ${low}`)
    for (const process of processes) {
      const wallet = await process.call('wallet', (ledger) => ledger.wallet(workspaceId as WorkspaceId))
      if ('kind' in wallet) continue
      if (wallet.posted !== low || wallet.held !== 0n) {
        oracle.violate(
          `M1: ${process.name} says ${wallet.posted} (held ${wallet.held}) of ${workspaceId}, it is ${low}`,
        )
      }
    }
  }
}
