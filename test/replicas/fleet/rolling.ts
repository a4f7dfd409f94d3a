// A rolling restart or upgrade under streams: one replica after the other is stopped and started, and a balancer that reads
// /readyz loses not one request.

import { join } from 'node:path'
import { checkBooks, openingCredit } from '../../parts/crash-books.ts'
import type { Receipt } from '../../parts/crash-client.ts'
import { startLoad } from '../../parts/crash-load.ts'
import { balanceByReadiness } from './balancer.ts'
import { type Fleet, startFleet } from './fleet.ts'
import { startNginx } from './nginx.ts'
import { countEnds, type Progress, type Proof, until, verifyByCommand } from './proof.ts'

export interface RollingOptions {
  /** How often all of them are restarted. */
  readonly rounds: number
  /** How long a stopping gateway is still there to say that it goes; undefined = as it comes. */
  readonly drainDelaySeconds?: number
  readonly streams: number
  /** Who is in front: one that looks at /readyz this often, or nginx as it is shipped, which looks at answers only. */
  readonly front: { readonly probeMs: number } | 'nginx'
  /** Two replicas without Redis become the next version, which changes tables that every request uses. */
  readonly upgrade?: boolean
  /** How many requests are answered at least. */
  readonly requests?: number
  /** Calls may be refused because a commit took longer than two seconds, which says nothing about restarts. */
  readonly mayCommitSlowly?: boolean
  readonly onProgress?: Progress
}

const wholes = 4
const nextVersion = join(import.meta.dir, '../../upgrade/next-version.ts')

export async function runRolling(options: RollingOptions): Promise<Proof> {
  const { rounds, drainDelaySeconds = 5, streams, front, upgrade = false, requests = 0 } = options
  const { mayCommitSlowly = false, onProgress = () => {} } = options
  await using fleet = await startFleet({
    redis: !upgrade,
    size: upgrade ? 2 : 3,
    env: { TOLLGATE_DRAIN_DELAY_SECONDS: String(drainDelaySeconds) },
  })
  await using balancer = front === 'nginx' ? await startNginx(fleet) : balanceByReadiness(fleet, front.probeMs)
  const load = startLoad({ gateway: balancer, streams, wholes })
  const faults: string[] = []
  let running = 0
  for (let round = 1; round <= rounds; round++) {
    for (const member of fleet.members) {
      const before = load.receipts.length
      await until(() => load.receipts.length >= before + 2 * streams && load.runningStreams() >= streams / 2)
      running += load.runningStreams()
      const end = await member.stop()
      if (end !== 0) faults.push(`a replica did not stop properly: ${end}`)
      await member.start(upgrade ? [nextVersion] : undefined)
      if (upgrade) faults.push(...(await checkUpgraded(fleet)))
    }
    onProgress(`round ${round} of ${rounds}: ${load.asked()} asked`)
  }
  const before = load.receipts.length
  await until(() => load.receipts.length >= Math.max(requests, before + 2 * streams))
  const receipts = await load.end()
  const ends = countEnds(receipts)
  // All processes together have more to do than this machine can: that has nothing to do with a restart.
  const isShed = ({ status, text }: Receipt) =>
    status === 503 &&
    (text.includes('too busy') || (mayCommitSlowly && /cannot (record charges|reach its database)/.test(text)))
  const shed = receipts.filter(isShed)
  const failed = receipts.filter((receipt) => !['complete', 'left'].includes(receipt.end) && !isShed(receipt))
  faults.push(
    ...failed.slice(0, 3).map(({ end, status, text }) => `${end}: ${status} ${text.slice(-200)}`),
    ...(await checkBooks(fleet.database, { paidIn: openingCredit, receipts, asked: load.asked() })),
    // The program that the command starts is the old version, which refuses the database.
    ...(upgrade ? [] : await verifyByCommand(fleet)),
    ...fleet.errors(),
  )
  return {
    faults,
    figures: {
      [upgrade ? 'upgraded replicas' : 'restarts']: rounds * fleet.members.length,
      'streams running when a replica was stopped, together': running,
      'requests asked': load.asked(),
      'seen complete': ends.complete,
      'left by the client': ends.left,
      'turned away because this machine was busy': shed.length,
      failed: failed.length,
    },
  }
}

/** The first replica of the new version has changed the tables, and the old version no longer starts on them. */
async function checkUpgraded(fleet: Fleet): Promise<readonly string[]> {
  const refused = await verifyByCommand(fleet)
  return /newer Tollgate: its migration 9999-next is unknown here/.test(refused.join())
    ? []
    : [`the old version does not refuse the new tables: ${refused.join() || 'it verifies them'}`]
}
