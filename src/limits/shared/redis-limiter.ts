// Counts in Redis: one script per batch, which reads, decides and writes in one step. The time is the server's, because
// the clocks of processes differ; while the server is away, each process has its share.

import { assert } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Redis, redisScript } from '../../store/redis.ts'
import type { AdmitAnswer, AdmitOperation, Batch, LoadReading, LoadStore } from './batch.ts'
import type { BucketState } from './bucket-state.ts'
import scriptText from './limit-script.lua' with { type: 'text' }
import { createSharedLimiter, type LimiterMode, type SharedLimiter } from './shared-limiter.ts'

export interface RedisLimiterOptions {
  readonly redis: Pick<Redis, 'run'>
  readonly clock: Clock
  /** This and what follows: see SharedLimiterOptions. */
  liveReplicas(): number
  readonly onMode?: ((mode: LimiterMode) => void) | undefined
  readonly patienceMs?: number
  readonly leaseMs?: number
  /** For tests: in place of the server's time. */
  nowMs?(): number
}

/**
 * A thousand times what it takes: as long as the store is only slow, it counts for all, and a share beside its count
 * would let through more than the limit.
 */
const defaultPatienceMs = 1000

/** The number names the form of what is stored: another form has other keys. */
const keyPrefix = 'tollgate:limits:1:'
const readingLength = 10

export function createRedisLimiter(options: RedisLimiterOptions): SharedLimiter {
  const { clock, liveReplicas, onMode, leaseMs, patienceMs = defaultPatienceMs } = options
  const store = createRedisStore(options)
  return createSharedLimiter({ store, clock, liveReplicas, patienceMs, leaseMs, onMode })
}

function createRedisStore({ redis, nowMs }: RedisLimiterOptions): LoadStore {
  const script = redisScript(scriptText)
  return {
    async exchange(batch) {
      const keys = batch.scopes.map(({ id }) => keyPrefix + id)
      const text = JSON.stringify(nowMs ? { ...batch, nowMs: nowMs() } : batch)
      return readAnswers(batch, await redis.run(script, keys, [text]))
    },
  }
}

function readAnswers({ operations }: Batch, reply: unknown): readonly AdmitAnswer[] {
  const admits = operations.filter((operation) => operation.kind === 'admit')
  assert(Array.isArray(reply) && reply.length === admits.length, 'the script answers every admission')
  return admits.map((operation, at) => readAnswer(operation, reply[at]))
}

function readAnswer({ scopes }: AdmitOperation, answer: unknown): AdmitAnswer {
  const length = 1 + scopes.length * readingLength
  assert(
    Array.isArray(answer) && answer.length === length && answer.every(Number.isSafeInteger),
    'an answer is numbers',
  )
  const numbers: readonly number[] = answer
  return {
    admitted: numbers[0] === 1,
    loads: scopes.map((_, at) => readLoad(numbers.slice(1 + at * readingLength, 1 + (at + 1) * readingLength))),
  }
}

/** As `putReading` of the script writes it. */
function readLoad(numbers: readonly number[]): LoadReading {
  const [running = 0, sequence = -1] = numbers.slice(8)
  return {
    requests: readBucket(numbers.slice(0, 4)),
    tokens: readBucket(numbers.slice(4, 8)),
    running,
    sequence: sequence < 0 ? undefined : sequence,
  }
}

function readBucket([limit = -1, usedUnits = 0, atMs = 0, pace = 0]: readonly number[]): BucketState | undefined {
  return limit < 0 ? undefined : { limit, usedUnits, atMs, pace }
}
