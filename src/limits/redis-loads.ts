// Counts in Redis: one script per batch, which reads, decides and writes in one step. The time is the server's, because
// the clocks of processes differ.

import { assert } from '../kernel/failure.ts'
import { type Redis, redisScript } from '../store/redis.ts'
import type { AdmitAnswer, AdmitOperation, AnsweredLoad, LoadStore } from './batch.ts'
import scriptText from './limit-script.lua' with { type: 'text' }
import type { Bucket } from './load.ts'

/** The number is the version of the stored format: another format has other keys. */
const keyPrefix = 'tollgate:limits:1:'
const readingLength = 10

/** `nowMs`: for tests, in place of the server's time. */
export function createRedisLoads(redis: Pick<Redis, 'run'>, nowMs?: () => number): LoadStore {
  const script = redisScript(scriptText)
  return {
    async exchange(batch) {
      const keys = batch.scopes.map(({ id }) => keyPrefix + id)
      const text = JSON.stringify(nowMs ? { ...batch, nowMs: nowMs() } : batch)
      const reply = await redis.run(script, keys, [text])
      assert(Array.isArray(reply) && reply.length === batch.admits.length, 'the script answers every admission')
      return batch.admits.map((operation, at) => readAnswer(operation, reply[at]))
    },
  }
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
function readLoad(numbers: readonly number[]): AnsweredLoad {
  const [running = 0, sequence = -1] = numbers.slice(8)
  return {
    requests: readBucket(numbers.slice(0, 4)),
    tokens: readBucket(numbers.slice(4, 8)),
    running,
    sequence: sequence < 0 ? undefined : sequence,
  }
}

function readBucket([limit = -1, usedUnits = 0, atMs = 0, pace = 0]: readonly number[]): Bucket | undefined {
  return limit < 0 ? undefined : { limit, usedUnits, atMs, pace }
}
