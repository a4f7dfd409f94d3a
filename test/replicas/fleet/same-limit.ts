// One limit, asked by many at once: through all replicas together it lets through what one of them alone would.

import { type Ask, askForReceipt, type Receipt } from '../../parts/crash-client.ts'
import { chat } from '../../parts/surfaces.ts'
import { type Balancer, balance } from './balancer.ts'
import { type Fleet, readMetric, startFleet } from './fleet.ts'
import { type Proof, until } from './proof.ts'

export interface SameLimitOptions {
  readonly redis: boolean
  /** How many ask at once. */
  readonly asking: number
}

const perMinute = 30
const atOnce = 12
const ask: Ask = {
  surface: chat,
  model: 'test/chat',
  stream: true,
  order: { inputTokens: 3, outputTokens: 2, pieces: 1, pauseMs: 0 },
}

export async function runSameLimit({ redis, asking }: SameLimitOptions): Promise<Proof> {
  await using fleet = await startFleet({ redis })
  const repeats = { count: 0 }
  const measure = <T>(work: () => Promise<T>): Promise<T> => whileShared(fleet, repeats, work)
  const counts = {
    oneByRate: await measure(() => askByRate(fleet, 'one', asking)),
    threeByRate: await measure(() => askByRate(fleet, 'all', asking)),
    oneAtOnce: await measure(() => askAtOnce(fleet, 'one', asking)),
    threeAtOnce: await measure(() => askAtOnce(fleet, 'all', asking)),
  }
  const faults = [
    ...rateFaults('one replica', counts.oneByRate),
    ...rateFaults('three replicas', counts.threeByRate),
    ...placeFaults('one replica', counts.oneAtOnce),
    ...placeFaults('three replicas', counts.threeAtOnce),
    ...fleet.errors(),
  ]
  return {
    faults,
    figures: {
      [`${perMinute} per minute, one replica lets through`]: counts.oneByRate.admitted,
      [`${perMinute} per minute, three replicas let through`]: counts.threeByRate.admitted,
      [`${atOnce} at once, one replica lets through`]: counts.oneAtOnce,
      [`${atOnce} at once, three replicas let through`]: counts.threeAtOnce,
      'asked each time': asking,
      'measured again, because the store was late': repeats.count,
    },
  }
}

/** The log is written this much later at most, by a process that is not held up. */
const logMs = 100

/**
 * On a busy machine the store may be late. A replica then goes on with its share of the limit and logs it. How many it
 * lets through then is another promise, so the measurement is repeated.
 */
async function whileShared<T>(fleet: Fleet, repeats: { count: number }, work: () => Promise<T>): Promise<T> {
  const timesAlone = () => fleet.members.flatMap(({ warnings }) => warnings.filter(isAlone)).length
  for (;;) {
    const before = timesAlone()
    const result = await work()
    await Bun.sleep(logMs)
    // A process that answers now has written what was due before.
    await allShared(fleet)
    await Bun.sleep(logMs)
    if (timesAlone() === before) return result
    repeats.count++
    await until(() => allShared(fleet))
  }
}

const isAlone = (line: string) => line.includes('limits are counted per replica')

async function allShared(fleet: Fleet): Promise<boolean> {
  const modes = await Promise.all(fleet.members.map((member) => readMetric(member, 'tollgate_limiter_mode')))
  return modes.every((mode) => mode === 0)
}

type Through = 'one' | 'all'

function entrance(fleet: Fleet, key: string, through: Through): Balancer {
  return balance(fleet, key, (member) => through === 'all' || member === fleet.members[0])
}

async function makeKey(fleet: Fleet, limits: object): Promise<string> {
  const { data: workspaces } = await fleet.manage('GET', '/api/workspaces')
  const { data: projects } = await fleet.manage('GET', `/api/workspaces/${workspaces[0].id}/projects`)
  const { secret } = await fleet.manage('POST', `/api/projects/${projects[0].id}/keys`, { name: 'limited', limits })
  return secret
}

/** A machine that is busy turns some away without a look at their limits; those are sent again. */
async function askUntilJudged(gateway: Balancer): Promise<Receipt> {
  for (;;) {
    const receipt = await askForReceipt(gateway, ask)
    if (receipt.status !== 503) return receipt
    await Bun.sleep(50)
  }
}

interface RateCount {
  readonly admitted: number
  readonly elapsedMs: number
  readonly others: readonly Receipt[]
}

async function askByRate(fleet: Fleet, through: Through, asking: number): Promise<RateCount> {
  const gateway = entrance(fleet, await makeKey(fleet, { requests_per_minute: perMinute }), through)
  const startedMs = performance.now()
  const receipts = await Promise.all(Array.from({ length: asking }, () => askUntilJudged(gateway)))
  return {
    admitted: receipts.filter(({ end }) => end === 'complete').length,
    elapsedMs: performance.now() - startedMs,
    others: receipts.filter(({ end, status }) => end !== 'complete' && status !== 429),
  }
}

/** The content of the bucket, and what drains meanwhile. */
function rateFaults(who: string, { admitted, elapsedMs, others }: RateCount): readonly string[] {
  const most = perMinute + Math.floor((elapsedMs * perMinute) / 60_000)
  return [
    ...(admitted < perMinute || admitted > most ? [`${who} let ${admitted} through, not ${perMinute} to ${most}`] : []),
    ...others.slice(0, 3).map(({ status, text }) => `${who} answered ${status} ${text.slice(-200)}`),
  ]
}

/** None of those that are let in comes to its end before all were judged. */
async function askAtOnce(fleet: Fleet, through: Through, asking: number): Promise<number> {
  const gateway = entrance(fleet, await makeKey(fleet, { concurrent_requests: atOnce }), through)
  const { calls } = fleet.upstream.upstream
  const callsBefore = calls.length
  fleet.upstream.closeGate()
  let refused = 0
  const judged = Array.from({ length: asking }, async () => {
    const receipt = await askUntilJudged(gateway)
    if (receipt.status === 429) refused++
    return receipt
  })
  await until(() => refused + calls.length - callsBefore >= asking)
  fleet.upstream.openGate()
  await Promise.all(judged)
  return asking - refused
}

function placeFaults(who: string, admitted: number): readonly string[] {
  return admitted === atOnce ? [] : [`${who} let ${admitted} run at once, not ${atOnce}`]
}
