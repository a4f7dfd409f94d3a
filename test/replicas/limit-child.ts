// Runs as a separate process: sends the given number of requests at once, alternating between two keys of one project,
// and prints how many of each were admitted. The time of the store stands still, so that nothing refills, and no admitted
// request ends.

import { systemClock } from '../../src/kernel/clock.ts'
import type { RateScope } from '../../src/limits/limiter.ts'
import { createRedisLoads } from '../../src/limits/redis-loads.ts'
import { SharedLimiter } from '../../src/limits/shared-limiter.ts'
import { createSqlLoads } from '../../src/limits/sql-loads.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { openRedis } from '../../src/store/redis.ts'

const [url = '', times = '0', nowMs = '0'] = process.argv.slice(2)
const readMs = () => Number(nowMs)

async function openStore() {
  if (url.startsWith('postgres')) return createSqlLoads(await openPostgres(url, { timeoutFactor: 30 }), readMs)
  const redis = openRedis({ url })
  while (!redis.connected) await Bun.sleep(5)
  return createRedisLoads(redis, readMs)
}

const limiter = new SharedLimiter({
  store: await openStore(),
  clock: systemClock,
  liveReplicas: () => 3,
  timeoutMs: 60_000,
})
const project: RateScope = { kind: 'project', id: 'prj_1', name: 'web', limits: { requestsPerMinute: 140 } }
const keys: readonly RateScope[] = [
  { kind: 'key', id: 'key_1', name: 'one', limits: { requestsPerMinute: 100, tokensPerMinute: 2000 } },
  { kind: 'key', id: 'key_2', name: 'two', limits: { concurrentRequests: 60 } },
]

async function ask(n: number): Promise<string> {
  const key = keys[n % 2]
  const verdict = await limiter.admit(key ? [key, project] : [project], 25)
  return `${n % 2}${verdict.kind}`
}

process.stdout.write('ready\n')
// All begin together, when the parent says so.
await Bun.stdin.stream().getReader().read()
const verdicts = await Promise.all(Array.from({ length: Number(times) }, (_, n) => ask(n)))
const count = (verdict: string) => verdicts.filter((each) => each === verdict).length
process.stdout.write(
  `${JSON.stringify({ one: count('0admitted'), two: count('1admitted'), mode: limiter.mode.kind })}\n`,
)
// Exits as if killed, without giving its slots back.
process.exit(0)
