// Run as a process of its own: asks as often as told, all at once and for two keys of one project in turn, and prints how
// many of each were let through. The time of the store stands still, so that nothing refills, and nothing that was let
// through ends.

import { systemClock } from '../../src/kernel/clock.ts'
import type { LimitScope } from '../../src/limits/limit.ts'
import { createRedisLimiter } from '../../src/limits/shared/redis-limiter.ts'
import { createSqlLimiter } from '../../src/limits/shared/sql-limiter.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { openRedis } from '../../src/store/redis.ts'

const [url = '', times = '0', nowMs = '0'] = process.argv.slice(2)
const options = { clock: systemClock, liveReplicas: () => 3, patienceMs: 60_000, nowMs: () => Number(nowMs) }

async function createLimiter() {
  if (url.startsWith('postgres'))
    return createSqlLimiter({ ...options, database: await openPostgres(url, { patience: 30 }) })
  const redis = openRedis({ url })
  while (!redis.connected) await Bun.sleep(5)
  return createRedisLimiter({ ...options, redis })
}

const limiter = await createLimiter()
const project: LimitScope = { kind: 'project', id: 'prj_1', name: 'web', limits: { requestsPerMinute: 140 } }
const keys: readonly LimitScope[] = [
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
// With a word of its own it would give its places back; it goes as one that is killed.
process.exit(0)
