// A charge whose commit is not confirmed in time: the error says that the outcome is unknown, and whatever it turns out
// to be, nothing is paid for twice under one idempotency key. On both engines, both surfaces, streamed and whole. Here the
// ledger is made to answer as it does after thirty seconds; that it does so is tested with the ledgers of either engine, and
// with real stalls in test/crash/stalls.test.ts.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { zeroNano } from '../../src/kernel/money.ts'
import { unavailable } from '../../src/ledger/account.ts'
import type { Ledger, Settlement, SettleOutcome } from '../../src/ledger/ledger.ts'
import { ask } from '../parts/ask.ts'
import { forEachEngine } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import { answerWith } from '../parts/upstream-words.ts'
import { allPaths, lastError, openTill, type Path, type Till, terminal } from './till.ts'
import { usd } from './wallets.ts'

/** 7 × 350 + 2 × 1,050 nano-dollars. */
const charge = 4_550n

/** Settlements wait here for their outcome, while there is one. */
let stall: PromiseWithResolvers<'made' | 'not made'> | undefined

function wrapLedger(real: Ledger): Ledger {
  const settleLater = (settlement: Settlement, outcome: Promise<'made' | 'not made'>): SettleOutcome => {
    // As in a commit that hangs, the row is made before it is known that it will.
    const charge = settlement.quoted ?? settlement.cost
    const row = settlement.row({ workspaceId: 'ws_payer', charge, writtenOff: zeroNano, budgets: null })
    const end = outcome.then(async (known) => {
      if (known === 'not made') await real.release(settlement.requestId)
      const settled = known === 'made' ? await real.settle({ ...settlement, row: () => row }) : unavailable
      return settled.kind === 'unknown' ? undefined : settled
    })
    return { kind: 'unknown', retryAfterMs: 1000, end }
  }
  return {
    ...real,
    settle: async (settlement) => (stall ? settleLater(settlement, stall.promise) : real.settle(settlement)),
  }
}

interface CallerError {
  readonly code: unknown
  readonly message: string
}

/** The error of an answer, which must not look complete. */
async function errorOf(path: Path, response: Response): Promise<CallerError> {
  const text = await response.text()
  expect(text).not.toMatch(terminal)
  expect(text.match(/"error":(?!null)/g)).toHaveLength(1)
  expect(response.status).toBe(path.stream ? 200 : 503)
  return lastError(path.stream ? text : `data: ${text}`)
}

forEachEngine((engine) => {
  let till: Till
  beforeAll(async () => {
    till = await openTill({ databaseUrl: (await engine.createPlace()).url, wrapLedger })
    till.upstream.handle(answerWith({ input: 7, output: 2 }))
  })
  afterAll(() => stopAll(till))

  let keys = 0
  const send = (path: Path, key: string | undefined): Promise<Response> =>
    ask(till.gateway, path.surface, till.bodyFor(path), key === undefined ? {} : { 'idempotency-key': key })

  const requestLines = (requestId: string) =>
    till.gateway.logged().filter(({ message, request_id }) => message === 'request' && request_id === requestId)

  /** The record of a request once it is over, as GET /api/requests/{id} shows it. */
  async function recordOf(requestId: string): Promise<Record<string, unknown>> {
    for (;;) {
      const found = (await till.wallets.explain(requestId).catch(() => undefined)) as
        | Record<string, unknown>
        | undefined
      if (found?.status !== 200 && found !== undefined) return found
      await Bun.sleep(5)
    }
  }

  describe.each([...allPaths])('$name', (path) => {
    describe.each(['with an idempotency key', 'without one'] as const)('%s', (keyed) => {
      test.each(['made', 'not made'] as const)('a charge that turns out to be %s', async (known) => {
        const key = keyed === 'with an idempotency key' ? `key ${++keys}` : undefined
        const { upstream, wallets } = till
        const before = await wallets.read()
        const calls = upstream.calls.length
        stall = Promise.withResolvers()
        const { resolve } = stall
        const response = await send(path, key)
        const requestId = response.headers.get('request-id') ?? ''
        const { code, message } = await errorOf(path, response)
        expect(code).toBe('OVERLOADED')
        expect(message).toContain('it is not known yet whether it was charged')
        expect(message).toContain(`tollgate explain ${requestId}`)
        expect(message).toContain(`GET /api/requests/${requestId}`)
        expect(message).toContain(key === undefined ? 'its own charge' : 'the same Idempotency-Key')
        if (!path.stream) {
          expect(response.headers.get('retry-after')).toBe('1')
          expect(response.headers.get('x-should-retry')).toBe(String(key !== undefined))
        }

        // While the outcome is unknown, the money stays held and the key stays taken.
        expect((await wallets.read()).posted).toBe(before.posted)
        expect((await wallets.read()).held).toBeGreaterThan(0n)
        if (key !== undefined) {
          const early = await send(path, key)
          expect([early.status, early.headers.get('retry-after')]).toEqual([429, '1'])
          expect(await early.text()).toContain(requestId)
        }
        expect(upstream.calls).toHaveLength(calls + 1)
        expect(requestLines(requestId)).toEqual([])

        stall = undefined
        resolve(known)
        const record = await recordOf(requestId)
        const isMade = known === 'made'
        expect(record).toMatchObject({ status: 503, code: 'OVERLOADED', reason: message })
        expect(record).toMatchObject({
          cost: isMade ? usd(charge) : null,
          transfers: isMade ? [{ kind: 'charge' }] : [],
        })
        expect(record.notes).toEqual([`the charge was not confirmed in time; it was ${known}`])
        const line = { status: 503, code: 'OVERLOADED', ...(isMade && { cost: usd(charge) }) }
        expect(requestLines(requestId)).toMatchObject([line])
        const paid = isMade ? charge : 0n
        expect(await wallets.read()).toEqual({ posted: before.posted - paid, held: 0n })
        if (key === undefined) return

        let again = await send(path, key)
        while (again.status === 429) again = await send(path, key)
        const text = await again.text()
        if (!isMade) {
          // It runs as if it were the first, and is paid for once.
          expect([again.status, again.headers.get('x-tollgate-replayed')]).toEqual([200, null])
          expect(upstream.calls).toHaveLength(calls + 2)
        } else if (path.stream) {
          expect(again.status).toBe(400)
          expect(text).toContain(requestId)
        } else {
          expect([again.status, again.headers.get('x-tollgate-replayed')]).toEqual([200, 'true'])
          expect(text).toContain('hello')
        }
        if (isMade) expect(upstream.calls).toHaveLength(calls + 1)
        expect((await wallets.read()).posted).toBe(before.posted - charge)
      })
    })
  })
})
