// The duties of a gateway while its store is away, for every way to lose a store: refuse without calling a provider, hold
// back the end of what runs, and continue by itself afterwards.

import { expect } from 'bun:test'
import { checkBooks, countOpenHolds, type Outside, openingCredit, withBooks } from '../parts/crash-books.ts'
import { type Ask, askForReceipt, askKinds, type Receipt } from '../parts/crash-client.ts'
import type { CrashData } from '../parts/crash-gateway.ts'
import type { CrashUpstream } from '../parts/crash-upstream.ts'

/** A store that can be taken away and given back under a running gateway. */
export interface Outage {
  begin(): Promise<void>
  end(): Promise<void>
}

export interface Scene {
  readonly gateway: { readonly url: string; readonly key: string; errors(): readonly string[] }
  readonly crashUpstream: CrashUpstream
  readonly data: CrashData
  readonly outage: Outage
}

const order = { inputTokens: 7, outputTokens: 5, pieces: 2, pauseMs: 1 }
/** Both surfaces, both lanes, streamed and whole. */
export const allAsks: readonly Ask[] = askKinds.flatMap((kind) =>
  [true, false].map((stream) => ({ ...kind, stream, order })),
)

export interface Interrupted {
  /** Their answers came, but for the end; then the store went. */
  readonly running: readonly Promise<Receipt>[]
  /** Asked while the store was away, until one was refused: some are let in before the first commit has failed. */
  readonly probes: readonly Promise<Receipt>[]
}

/** Loses the store in the middle of eight answers, and checks what is said to those who come then. */
export async function loseStore({ gateway, crashUpstream, outage }: Scene): Promise<Interrupted> {
  const { upstream } = crashUpstream
  let ended = 0
  crashUpstream.closeGate()
  const running = allAsks.map(async (ask) => {
    const receipt = await askForReceipt(gateway, ask)
    ended++
    return receipt
  })
  await until(() => upstream.calls.length === allAsks.length)
  await outage.begin()
  crashUpstream.openGate()
  const probes = await probeUntilRefused(gateway)
  let admitted = probes.length
  for (const probe of probes) void probe.then(() => admitted--)

  const refusals = await Promise.all(allAsks.map((ask) => askForReceipt(gateway, ask)))
  for (const refusal of refusals) expectRefusal(refusal)
  // The probes that were admitted wait for the store, and may call the provider only now on a busy machine.
  await until(() => upstream.calls.length >= allAsks.length + admitted)
  expect(upstream.calls.length).toBe(allAsks.length + admitted)
  // Their charges are not durable, so no answer has ended.
  expect(ended).toBe(0)
  return { running, probes: [...probes, ...refusals.map((refusal) => Promise.resolve(refusal))] }
}

/** Asks again and again, without waiting for those that were let in. */
export async function probeUntilRefused(gateway: Scene['gateway']): Promise<Promise<Receipt>[]> {
  const probes: Promise<Receipt>[] = []
  let isRefused = false
  while (!isRefused) {
    const ask = allAsks[probes.length % allAsks.length] as Ask
    const probe = askForReceipt(gateway, ask).then((receipt) => {
      isRefused ||= receipt.end === 'refused'
      return receipt
    })
    probes.push(probe)
    // One that was let in comes back only when the store does.
    await Promise.race([probe, Bun.sleep(50)])
  }
  return probes
}

export function expectRefusal({ status, headers, text }: Receipt): void {
  expect(`${status} ${text}`).toStartWith('503 {')
  expect(headers?.get('retry-after')).toMatch(/^[1-9][0-9]*$/)
  expect((JSON.parse(text) as { error: { code: string } }).error.code).toBe('OVERLOADED')
}

/** The gateway takes calls again by itself; answers with the receipts of the calls that found out. */
export async function untilServed(gateway: Scene['gateway']): Promise<readonly Receipt[]> {
  const receipts: Receipt[] = []
  while (receipts.at(-1)?.end !== 'complete') {
    receipts.push(await askForReceipt(gateway, allAsks[0] as Ask))
    await Bun.sleep(50)
  }
  return receipts
}

/** After everything has come to its end: no hold is left, and the books agree with what the clients saw. */
export async function expectSoundBooks({ gateway, data }: Scene, receipts: readonly Receipt[]): Promise<void> {
  const outside: Outside = { paidIn: openingCredit, receipts, asked: receipts.length }
  await withBooks(data, async (database) => {
    await untilTrue(async () => (await countOpenHolds(database.sql)) === 0)
    expect(await checkBooks(database, outside)).toEqual([])
  })
  expect(gateway.errors()).toEqual([])
}

export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await Bun.sleep(5)
}

async function untilTrue(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await Bun.sleep(50)
}
