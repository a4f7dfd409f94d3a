// PostgreSQL goes away under load and comes back: callers get retryable errors, no provider is called without a hold,
// and all replicas go on by themselves.

import { checkBooks, countOpenHolds, openingCredit } from '../../parts/crash-books.ts'
import { type Ask, askForReceipt, type Receipt } from '../../parts/crash-client.ts'
import { startLoad } from '../../parts/crash-load.ts'
import { startCrashPostgres } from '../../parts/crash-postgres.ts'
import { chat } from '../../parts/surfaces.ts'
import { balance, isReady } from './balancer.ts'
import { type Fleet, startFleet } from './fleet.ts'
import { countEnds, type Progress, type Proof, until, verifyByCommand } from './proof.ts'

export interface PostgresRestartOptions {
  /** How long it is away, one after the other. */
  readonly gapsMs: readonly number[]
  /** Complete answers before the first, and after each. */
  readonly completeEach: number
  readonly onProgress?: Progress
}

const probeEveryMs = 50
const probe: Ask = {
  surface: chat,
  model: 'test/chat',
  stream: true,
  order: { inputTokens: 3, outputTokens: 2, pieces: 1, pauseMs: 0 },
}

export async function runPostgresRestart(options: PostgresRestartOptions): Promise<Proof> {
  const { gapsMs, completeEach, onProgress = () => {} } = options
  await using postgres = await startCrashPostgres()
  await using fleet = await startFleet({ redis: false, postgres })
  const ids = fleet.members.map(({ replicaId }) => replicaId)
  const gateway = balance(fleet)
  const load = startLoad({ gateway, streams: 36, wholes: 8 })
  const probes: Promise<Receipt>[] = []
  const count = (wanted: Receipt['end']) => countEnds(load.receipts)[wanted]
  const recoveriesMs: number[] = []
  await until(() => count('complete') >= completeEach && load.runningStreams() >= 20)
  for (const gapMs of gapsMs) {
    const probesBefore = probes.length
    await postgres.cut()
    const cutMs = performance.now()
    // The places of the load may all be taken by answers that wait for their charge, so others ask too. The gap must stay
    // below the 30 s after which those are given up.
    while (performance.now() - cutMs < gapMs) {
      probes.push(askForReceipt(gateway, probe))
      await Bun.sleep(probeEveryMs)
    }
    await postgres.start()
    const startedMs = performance.now()
    const completeBefore = count('complete')
    await until(() => allReady(fleet))
    recoveriesMs.push(performance.now() - startedMs)
    await until(() => count('complete') >= completeBefore + completeEach)
    onProgress(`away for ${((startedMs - cutMs) / 1000).toFixed(1)} s: ${probes.length - probesBefore} more asked`)
  }
  const receipts = [...(await load.end()), ...(await Promise.all(probes))]
  const asked = load.asked() + probes.length
  await until(async () => (await countOpenHolds(fleet.database.sql)) === 0)
  const ends = countEnds(receipts)
  const dispatched = receipts.filter(({ end }) => end !== 'refused')
  // A request that was refused must not have been sent.
  const calls = fleet.upstream.upstream.calls.length
  const faults = [
    ...(calls === dispatched.length ? [] : [`${calls} upstream calls for ${dispatched.length} that were let in`]),
    ...receipts.filter(isBadRefusal).slice(0, 3).map(describe),
    ...receipts
      .filter(({ end }) => end === 'failed' || end === 'cut')
      .slice(0, 3)
      .map(describe),
    ...(fleet.members.every(({ replicaId }, at) => replicaId === ids[at]) ? [] : ['a replica was started again']),
    ...fleet.members.filter((member) => !member.isUp()).map(({ url }) => `${url} ended`),
    ...(await checkBooks(fleet.database, { paidIn: openingCredit, receipts, asked })),
    ...(await verifyByCommand(fleet)),
    ...fleet.errors(),
  ]
  return {
    faults,
    figures: {
      'PostgreSQL away, s': gapsMs.map((gapMs) => gapMs / 1000).join(' and '),
      'requests asked': asked,
      'seen complete': ends.complete,
      'answered 503 with Retry-After': ends.refused,
      'broken off': ends.failed + ends.cut,
      'upstream calls, let in': `${calls}, ${dispatched.length}`,
      'all ready again after, s': recoveriesMs.map((ms) => (ms / 1000).toFixed(2)).join(' and '),
    },
  }
}

async function allReady(fleet: Fleet): Promise<boolean> {
  return (await Promise.all(fleet.members.map(isReady))).every(Boolean)
}

function isBadRefusal({ end, status, headers }: Receipt): boolean {
  return end === 'refused' && !(status === 503 && /^[1-9][0-9]*$/.test(headers?.get('retry-after') ?? ''))
}

function describe({ end, status, headers, text }: Receipt): string {
  return `${end}: ${status}, Retry-After ${headers?.get('retry-after')}, ${text.slice(-300)}`
}
