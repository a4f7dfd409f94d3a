// Three replicas under load while one after the other is killed: no wallet is overspent, no charge is lost, and what the dead
// had set aside is free again within a minute.

import { checkBooks, countCharges, openingCredit } from '../../parts/crash-books.ts'
import type { Receipt } from '../../parts/crash-client.ts'
import { type Load, startLoad } from '../../parts/crash-load.ts'
import { balance } from './balancer.ts'
import { type Fleet, type Member, startFleet } from './fleet.ts'
import { type HoldWatch, watchHolds } from './hold-watch.ts'
import { countEnds, type Progress, type Proof, until, verifyByCommand } from './proof.ts'

export interface StormOptions {
  readonly requests: number
  readonly killsLeast: number
  readonly killEveryMs: number
  /** The balance of the thin wallet, in nano-dollars. */
  readonly thinNanos: bigint
  /** The dead are found dead without twenty seconds of waiting. */
  readonly agesTheDead: boolean
  /** Holds of the dead must be gone after this. */
  readonly resolvedWithinMs: number
  readonly onProgress?: Progress
}

const streams = 48
const wholes = 16
/** So many refusals for an empty wallet until it counts as dry. */
const refusalsOfThin = 60

export async function runStorm(options: StormOptions): Promise<Proof> {
  const { resolvedWithinMs, onProgress = () => {} } = options
  await using fleet = await startFleet({ redis: true })
  await using watch = watchHolds(fleet.database)
  const startedMs = performance.now()
  const kills = { count: 0 }
  const paidIn = await topUp(fleet, options.requests)
  const load = startLoad({ gateway: balance(fleet), streams, wholes })
  const tell = () => onProgress(`${served(load)} served, ${kills.count} kills, ${watch.openNow()} holds open`)
  const telling = setInterval(tell, 5000)
  await stormUntil(fleet, watch, options, kills, () => {
    return served(load) >= options.requests && kills.count >= options.killsLeast
  })
  clearInterval(telling)
  const receipts = await load.end()
  const loadSeconds = (performance.now() - startedMs) / 1000

  onProgress('a thin wallet is emptied by all of them')
  const thin = await startThinLoad(fleet, options.thinNanos)
  await stormUntil(fleet, watch, options, kills, () => emptied(thin) >= refusalsOfThin)
  const thinReceipts = await thin.end()

  onProgress('waiting for the holds of the dead')
  await until(async () => {
    await watch.look()
    return watch.openNow() === 0 || watch.sinceLastDeathMs() > resolvedWithinMs
  }, 100)
  const faults = [
    ...(await checkBooks(fleet.database, {
      paidIn: openingCredit + paidIn + options.thinNanos,
      receipts: [...receipts, ...thinReceipts.map(asCharged)],
      asked: load.asked() + thin.asked(),
      wallets: 2,
    })),
    ...watch.faults(resolvedWithinMs),
    ...(await verifyByCommand(fleet)),
    ...(await stopAll(fleet)),
    ...fleet.errors(),
  ]
  const ends = countEnds(receipts)
  return {
    faults,
    figures: {
      'requests served': served(load),
      'of these seen complete': ends.complete,
      'left by the client': ends.left,
      'answered with a failure': ends.failed,
      'cut by a kill, before or after its first bytes': ends.cut,
      'turned away with 503': ends.refused,
      'charges in the ledger': await countCharges(fleet.database.sql),
      'kills (kill -9)': kills.count,
      'seconds of load': loadSeconds.toFixed(1),
      'holds left by the dead': watch.leftByDead(),
      'slowest hold resolved after a death, s': (watch.slowestMs() / 1000).toFixed(1),
      'requests on the thin wallet': thin.asked(),
      'refused with 402 there': emptied(thin),
      'looks at the balances': watch.looks(),
    },
  }
}

/** Kills one after the other and starts it again, until it is enough. */
async function stormUntil(
  fleet: Fleet,
  watch: HoldWatch,
  { killEveryMs, agesTheDead }: StormOptions,
  kills: { count: number },
  isEnough: () => boolean,
): Promise<void> {
  while (!isEnough()) {
    const nextMs = performance.now() + killEveryMs
    await until(() => performance.now() >= nextMs || isEnough(), 50)
    const victim = fleet.members[Math.floor(Math.random() * fleet.members.length)] as Member
    const { replicaId } = victim
    await victim.kill()
    kills.count++
    watch.died(replicaId)
    if (agesTheDead) await age(fleet, replicaId)
    await victim.start()
  }
}

/** More than they can cost: this wallet must not run dry. */
async function topUp(fleet: Fleet, requests: number): Promise<bigint> {
  const { data: workspaces } = await fleet.manage('GET', '/api/workspaces')
  const dollars = Math.ceil(requests / 1000)
  await fleet.manage('POST', `/api/workspaces/${workspaces[0].id}/topups`, { amount: `${dollars}.00` })
  return BigInt(dollars) * 1_000_000_000n
}

/** Without those that a busy machine turned away at the door. */
function served({ receipts }: Load): number {
  return receipts.filter(({ status }) => status === 200).length
}

/** As if it had been silent for as long as it takes to be thought dead. */
async function age({ database }: Fleet, replicaId: string): Promise<void> {
  await database.transaction(
    (sql) => sql`UPDATE replicas SET heartbeat_at = heartbeat_at - 20000 WHERE id = ${replicaId}`,
  )
}

async function startThinLoad(fleet: Fleet, nanos: bigint): Promise<Load> {
  const workspace = await fleet.manage('POST', '/api/workspaces', { name: 'thin' })
  const amount = (Number(nanos) / 1e9).toFixed(9)
  await fleet.manage('POST', `/api/workspaces/${workspace.id}/topups`, { amount })
  const project = await fleet.manage('POST', `/api/workspaces/${workspace.id}/projects`, { name: 'thin' })
  const { secret } = await fleet.manage('POST', `/api/projects/${project.id}/keys`, { name: 'thin' })
  return startLoad({ gateway: balance(fleet, secret), streams, wholes })
}

function emptied({ receipts }: Load): number {
  return receipts.filter(({ status }) => status === 402).length
}

/** A wallet that cannot pay the whole price pays what it has and is quoted that amount; then the price does not matter. */
function asCharged(receipt: Receipt): Receipt {
  const { quoted, expected } = receipt
  return quoted !== undefined && quoted < expected ? { ...receipt, expected: quoted } : receipt
}

/** After a proper stop no money is held any more. */
async function stopAll(fleet: Fleet): Promise<readonly string[]> {
  const ends = await Promise.all(fleet.members.map((member) => member.stop()))
  const [row] = await fleet.database.sql<{ held: bigint }>`SELECT CAST(SUM(held) AS BIGINT) AS held FROM balances`
  return [
    ...ends.filter((end) => end !== 0).map((end) => `a replica did not stop properly: ${end}`),
    ...(row?.held === 0n ? [] : [`${row?.held} nano-dollars are held although no replica runs`]),
  ]
}
