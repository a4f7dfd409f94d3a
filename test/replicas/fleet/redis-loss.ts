// Redis goes away under load and comes back: every replica goes on with its share, says so in its log, on its page and
// in its metrics, and counts with the others again by itself. How far above the limit that leads is measured.

import { type Ask, askForReceipt, type Receipt } from '../../parts/crash-client.ts'
import { chat, messages } from '../../parts/surfaces.ts'
import { type Balancer, balance } from './balancer.ts'
import { type Fleet, type Member, readMetric, startFleet } from './fleet.ts'
import { type Progress, type Proof, until } from './proof.ts'

export interface RedisLossOptions {
  /** Per minute. */
  readonly limit: number
  /** How often Redis goes. */
  readonly losses: number
  /** How many requests are sent while it is away, and again afterwards. */
  readonly askedEach: number
  readonly onProgress?: Progress
}

const places = 12
const aloneLine = 'limits are counted per replica'
const order = { inputTokens: 3, outputTokens: 2, pieces: 1, pauseMs: 0 }
const asks: readonly Ask[] = [
  { surface: chat, model: 'test/chat', stream: false, order },
  { surface: messages, model: 'test/chat', stream: true, order },
]

export async function runRedisLoss(options: RedisLossOptions): Promise<Proof> {
  const { limit, losses, askedEach, onProgress = () => {} } = options
  await using fleet = await startFleet({ redis: true })
  const { data: workspaces } = await fleet.manage('GET', '/api/workspaces')
  await fleet.manage('PUT', `/api/workspaces/${workspaces[0].id}/limits`, { requests_per_minute: limit })
  const load = startCounting(balance(fleet))
  const faults: string[] = []
  const away: number[] = []
  const back: number[] = []
  await until(() => load.admitted >= limit / 2)
  for (let loss = 1; loss <= losses; loss++) {
    const lostMs = performance.now()
    await fleet.redis?.kill()
    await until(() => all(fleet, (text) => text.includes(aloneLine)))
    away.push(performance.now() - lostMs)
    await untilSeenAs(fleet, 1, aloneLine)
    await more(load, askedEach)
    onProgress(
      `loss ${loss}: ${load.admitted} admitted of ${load.asked}, limit so far ${Math.floor(load.allowed(limit))}`,
    )
    const startedMs = performance.now()
    await fleet.redis?.start()
    await until(() => all(fleet, (text) => text === 'ready\n'))
    back.push(performance.now() - startedMs)
    await untilSeenAs(fleet, 0, 'limits are counted together again')
    await more(load, askedEach)
    // One more limit for each loss is what docs/operate/replicas.md allows. To a replica on a slow machine, answers that
    // are late are a loss too.
    const lost = Math.max(loss, ...fleet.members.map((member) => countLines(member, aloneLine)))
    if (load.admitted > load.allowed(limit) + lost * limit)
      faults.push(`${load.admitted} were let through after ${lost} losses, ${load.allowed(limit)} is the limit`)
  }
  const others = await load.end()
  if (load.admitted < limit) faults.push(`only ${load.admitted} were let through`)
  faults.push(...others.slice(0, 3).map(({ status, text }) => `answered with ${status} ${text.slice(0, 200)}`))
  return {
    faults: [...faults, ...fleet.errors()],
    figures: {
      'limit per minute': limit,
      'losses of Redis': losses,
      'asked, let through': `${load.asked}, ${load.admitted}`,
      'above the limit over all of it': Math.ceil(Math.max(0, load.admitted - load.allowed(limit))),
      'slowest to go on alone, s': (Math.max(...away) / 1000).toFixed(2),
      'slowest to count together again, s': (Math.max(...back) / 1000).toFixed(2),
    },
  }
}

interface Counting {
  asked: number
  admitted: number
  /** The whole limit at the start, and what flowed in since. */
  allowed(limit: number): number
  /** Answers that are neither complete nor a refusal for the limit. */
  end(): Promise<readonly Receipt[]>
}

function startCounting(gateway: Balancer): Counting {
  const startedMs = performance.now()
  const others: Receipt[] = []
  let isEnding = false
  const counting: Counting = {
    asked: 0,
    admitted: 0,
    allowed: (limit) => limit + (limit * (performance.now() - startedMs)) / 60_000,
    async end() {
      isEnding = true
      await Promise.all(asking)
      return others
    },
  }
  const fill = async (): Promise<void> => {
    while (!isEnding) {
      const receipt = await askForReceipt(gateway, asks[counting.asked++ % asks.length] as Ask)
      if (receipt.end === 'complete') counting.admitted++
      // For the limit, or because this machine is busy.
      else if (receipt.status === 429 || receipt.status === 503) await Bun.sleep(20)
      else others.push(receipt)
    }
  }
  const asking = Array.from({ length: places }, fill)
  return counting
}

async function more(load: Counting, count: number): Promise<void> {
  const before = load.asked
  await until(() => load.asked >= before + count)
}

async function all(fleet: Fleet, says: (text: string) => boolean): Promise<boolean> {
  const texts = await Promise.all(fleet.members.map(async ({ url }) => await (await fetch(`${url}/readyz`)).text()))
  return texts.every(says)
}

/** In the log and in the metrics; the page was looked at before. */
async function untilSeenAs(fleet: Fleet, mode: number, line: string): Promise<void> {
  for (const member of fleet.members) {
    await until(() => countLines(member, line) > 0)
    await until(async () => (await readMetric(member, 'tollgate_limiter_mode')) === mode)
  }
}

const countLines = ({ warnings }: Member, line: string): number =>
  warnings.filter((warning) => warning.includes(line)).length
