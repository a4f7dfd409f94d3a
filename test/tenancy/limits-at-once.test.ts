// 200 calls at once against a limit that twenty of them use up, for each kind of subject and window: never more than the limit,
// and at least 95 % of it. One process on SQLite, two on PostgreSQL, with and without Redis. A call costs $0.00005, which is all
// that it can cost.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createId } from '../../src/kernel/ids.ts'
import { verify } from '../../src/ledger/verify.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { ask } from '../parts/ask.ts'
import { createEngine, type Place } from '../parts/engines.ts'
import { type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { findRedisProgram, type RedisServer, startRedis } from '../parts/redis.ts'
import { chat, inWordsOf } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { chatAnswer } from '../parts/upstream-words.ts'
import { acmeConfig, outputPriced, startTenancy, type Tenancy } from './tenancy.ts'

const callsAtOnce = 200
const limit = '0.001'
const limitNano = 1_000_000n
const answer = chatAnswer({ prompt_tokens: 3, completion_tokens: 50, total_tokens: 53 })
const shared = {
  TOLLGATE_ADMIN_TOKEN: 'token-of-both',
  TOLLGATE_SECRET: 'a0b1c2d3e4f5061728394a5b6c7d8e9fa0b1c2d3e4f50617',
}

const kinds = [
  { subject: 'all', window: 'day' },
  { subject: 'all', window: '5h' },
  { subject: 'user', window: '24h' },
  { subject: 'tag:team=web', window: '1h' },
  { subject: 'person', window: 'month' },
  { subject: 'person', window: '7d' },
  { subject: 'group:design', window: 'week' },
  { subject: 'group:design', window: '5h', models: 'acme/*' },
] as const

function cases(name: string, engineName: 'sqlite' | 'postgres', hasRedis: boolean): void {
  let upstream: Upstream
  let tenancy: Tenancy
  let second: Gateway | undefined
  let redis: RedisServer | undefined
  let place: Place

  beforeAll(async () => {
    upstream = startUpstream((_, reply) => reply.json(200, answer))
    const engine = createEngine(engineName)
    place = await engine.createPlace()
    redis = hasRedis ? await startRedis() : undefined
    const env = { ...shared, ...(redis && { REDIS_URL: redis.url }) }
    const config = acmeConfig(upstream.url, outputPriced)
    tenancy = await startTenancy({ engine: { ...engine, createPlace: async () => place }, config, env })
    if (place.url !== undefined) second = await startGateway({ config, env: { ...env, DATABASE_URL: place.url } })
  })

  afterAll(async () => {
    await second?.stop()
    await stopAll(tenancy, upstream)
    await redis?.[Symbol.asyncDispose]()
  })

  const openBooks = () => openDatabase({ url: place.url, dataFolder: tenancy.gateway.dataFolder })

  // Redis counts no money: two kinds are enough to see that it changes nothing.
  for (const kind of hasRedis ? kinds.filter(({ window }) => window === '5h') : kinds) {
    test(`${name}: ${Object.values(kind).join(' ')}`, async () => {
      const { workspaceId, projectId, keyId, key } = await tenancy.tenant({ credit: '1' })
      const person = createId('per')
      const database = await openBooks()
      await database.transaction(async (sql) => {
        await sql`INSERT INTO people (id, email, name, created_at) VALUES (${person}, ${`${person}@x.org`}, 'Ada', 0)`
        await sql`INSERT INTO members (id, person_id, workspace_id, role, source, created_at)
          VALUES (${createId('mem')}, ${person}, ${workspaceId}, 'member', 'invitation', 0)`
        await sql`UPDATE api_keys SET owner_id = ${person} WHERE id = ${keyId}`
      })
      const group = { name: 'design', members: [person] }
      await tenancy.must('POST', `/api/workspaces/${workspaceId}/groups`, group)
      await tenancy.must('PUT', `/api/projects/${projectId}/limits`, { spend_limits: [{ ...kind, limit }] })
      const body = { model: 'acme/large', max_tokens: 50, user: 'bob', messages: [{ role: 'user', content: 'hi' }] }
      const places = [tenancy.gateway, ...(second ? [second] : [])]
      const call = async (at: number) => {
        const gateway = places[at % places.length] as Gateway
        const answered = await ask({ ...gateway, key }, chat, inWordsOf(chat, body), { 'x-tollgate-tags': 'team=web' })
        await answered.text()
        return answered.status
      }
      const statuses = await Promise.all(Array.from({ length: callsAtOnce }, (_, at) => call(at)))
      expect(statuses.filter((status) => status !== 200 && status !== 429 && status !== 503)).toEqual([])
      // Whoever was turned away because others were running comes again.
      let answered = statuses.filter((status) => status === 200).length
      for (let tries = 0; tries < 40 && (await call(tries)) === 200; tries++) answered++
      const charged = async () => {
        const [row] = await database.sql<{ count: bigint; spent: bigint }>`SELECT COUNT(*) AS count,
          CAST(SUM(charge) AS BIGINT) AS spent FROM requests WHERE project_id = ${projectId} AND charge > 0`
        return row
      }
      // On SQLite they are applied from the journal, soon after the answers.
      while (((await charged())?.count ?? 0n) < answered) await Bun.sleep(20)
      const row = await charged()
      expect(row?.spent).toBeLessThanOrEqual(limitNano)
      expect(row?.spent).toBeGreaterThanOrEqual((limitNano * 95n) / 100n)
      expect((await verify(database)).findings).toEqual([])
      await database.close()
    })
  }
}

describe('200 calls at once', () => {
  describe('on sqlite', () => cases('one process', 'sqlite', false))
  describe.skipIf(findPostgresPrograms() === undefined)('on postgres', () => {
    describe('alone', () => cases('two replicas', 'postgres', false))
    describe.skipIf(findRedisProgram() === undefined)('and redis', () => cases('two replicas', 'postgres', true))
  })
})
