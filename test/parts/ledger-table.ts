// Runs a ledger case written as a table: one step per line, `what is done  →  what must come of it`. Requests have short
// names; money is nano-dollars. `hold a 30 day<=50 month<=80` also holds in a budget of the key's day and the
// workspace's month.

import { expect } from 'bun:test'
import { createId, type RequestId, type WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { type Budget, windowAt } from '../../src/ledger/budget.ts'
import type { CorrectOutcome, FundOutcome } from '../../src/ledger/fund.ts'
import type { ExtendOutcome, Ledger, SettleOutcome } from '../../src/ledger/ledger.ts'
import type { Database } from '../../src/store/database.ts'
import { addWorkspace, expectBooksRight, holdOf, openLedger, settlementOf } from './ledger.ts'

export async function runTable(database: Database, table: string): Promise<void> {
  await using books = await openLedger(database)
  const runner = createRunner(books.ledger, await addWorkspace(database), books.clock.now())
  for (const line of table.trim().split('\n')) {
    const [step = '', expected = ''] = line.split('→').map((part) => part.trim().replace(/ +/g, ' '))
    expect(`${step} → ${await runner(step)}`).toBe(`${step} → ${expected}`)
    await expectBooksRight(database)
  }
}

function createRunner(ledger: Ledger, workspaceId: WorkspaceId, now: number): (step: string) => Promise<string> {
  const ids = new Map<string, RequestId>()
  const idOf = (name = ''): RequestId => {
    const id = ids.get(name) ?? createId('req')
    ids.set(name, id)
    return id
  }
  const walletText = async () => {
    const { posted, held, available } = await ledger.wallet(workspaceId)
    return `posted ${posted} held ${held} free ${available}`
  }
  const transfersText = async (name: string | undefined) => {
    const transfers = await ledger.transfersOf(idOf(name))
    const legs = transfers.map((transfer) => {
      const debit = transfer.debitAccount === `wallet:${workspaceId}` ? 'wallet' : transfer.debitAccount
      return `${transfer.kind} ${debit}>${transfer.creditAccount} ${transfer.amount}`
    })
    return legs.join(', ') || 'none'
  }
  const scopes: Record<string, Omit<Budget, 'cap'>> = {
    day: { scopeId: 'key_1', window: windowAt('day', now) },
    month: { scopeId: workspaceId, window: windowAt('month', now) },
  }
  const scopeOf = (name = '') => scopes[name] ?? { scopeId: '', window: '' }
  const capsOf = (texts: readonly string[]): Budget[] =>
    texts.map((text) => {
      const [name, cap = '0'] = text.split('<=')
      return { ...scopeOf(name), cap: BigInt(cap) as Nano }
    })
  const budgetText = async (name: string | undefined) => {
    const { scopeId, window } = scopeOf(name)
    const { spent, held } = await ledger.budget(scopeId, window)
    return `spent ${spent} held ${held}`
  }
  return async (step) => {
    const [verb, first, second, ...caps] = step.split(' ')
    const amount = BigInt(second ?? '0')
    switch (verb) {
      case 'topup':
      case 'grant':
        return fundText(await ledger.fund({ workspaceId, kind: verb, amount: BigInt(first ?? '0') as Nano }))
      case 'add':
      case 'take':
        return correctText(
          await ledger.correct({ workspaceId, direction: verb, amount: BigInt(first ?? '0') as Nano, reason: 'test' }),
        )
      case 'hold':
        return extendText(await ledger.hold({ ...holdOf(workspaceId, amount, idOf(first)), budgets: capsOf(caps) }))
      case 'extend':
        return extendText(await ledger.extend(idOf(first), amount as Nano))
      case 'settle':
        return settleText(await ledger.settle(settlementOf(idOf(first), amount)))
      case 'release':
        return (await ledger.release(idOf(first))).kind
      case 'budget':
        return await budgetText(first)
      case 'wallet':
        return await walletText()
      case 'transfers':
        return await transfersText(first)
      default:
        throw new Error(`no such step: ${step}`)
    }
  }
}

function fundText(outcome: FundOutcome): string {
  return outcome.kind === 'funded' ? `funded, posted ${outcome.posted}` : outcome.kind
}

function correctText(outcome: CorrectOutcome): string {
  if (outcome.kind === 'insufficient') return `insufficient, posted ${outcome.posted} held ${outcome.held}`
  return outcome.kind === 'corrected' ? `corrected, posted ${outcome.posted}` : outcome.kind
}

function extendText(outcome: ExtendOutcome): string {
  if (outcome.kind === 'insufficient') return `insufficient, posted ${outcome.posted} held ${outcome.held}`
  if (outcome.kind !== 'over budget') return outcome.kind
  const { window, spent, held, cap } = outcome
  return `over the ${window.split(':')[0]}, spent ${spent} held ${held} cap ${cap}`
}

function settleText(outcome: SettleOutcome): string {
  if (outcome.kind !== 'settled') return outcome.kind
  const lost = outcome.writtenOff > 0n ? `, lost ${outcome.writtenOff}` : ''
  return `${outcome.repeated ? 'found' : 'charged'} ${outcome.charge}${lost}`
}
