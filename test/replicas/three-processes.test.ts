// Three processes together let through what one would, with Redis and with PostgreSQL alone.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { findRedisProgram, startRedis } from '../parts/redis.ts'
import { openPostgresStore } from './postgres-store.ts'

interface Counts {
  readonly one: number
  readonly two: number
  readonly mode: string
}

async function runChildren(url: string): Promise<readonly Counts[]> {
  const nowMs = String(systemClock.now())
  const children = [1, 2, 3].map(() =>
    Bun.spawn([process.execPath, join(import.meta.dir, 'limit-child.ts'), url, '300', nowMs], {
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  )
  const readers = children.map((child) => child.stdout.getReader())
  const readLine = async (at: number) => new TextDecoder().decode((await readers[at]?.read())?.value)
  for (const at of children.keys()) expect(await readLine(at)).toBe('ready\n')
  for (const child of children) {
    child.stdin.write('go')
    child.stdin.flush()
  }
  return await Promise.all([...children.keys()].map(async (at) => JSON.parse(await readLine(at)) as Counts))
}

function expectOneLimit(counts: readonly Counts[]): void {
  const sum = (of: (each: Counts) => number) => counts.reduce((total, each) => total + of(each), 0)
  expect(counts.map(({ mode }) => mode)).toEqual(['shared', 'shared', 'shared'])
  // 900 ask, half for each key: 2,000 tokens are 80 requests of 25; 60 may run; the project's 140 are just both.
  expect([sum(({ one }) => one), sum(({ two }) => two)]).toEqual([80, 60])
}

describe('three processes admit what one would', () => {
  test.skipIf(findRedisProgram() === undefined)('with redis', async () => {
    await using server = await startRedis()
    expectOneLimit(await runChildren(server.url))
  })

  test.skipIf(findPostgresPrograms() === undefined)('with postgres alone', async () => {
    await using store = await openPostgresStore()
    expectOneLimit(await runChildren(store.url))
  })
})
