// 200 calls at once against a limit that twenty of them use up, for each kind of subject and window: never more than the limit,
// and at least 95 % of it. One process on SQLite, two on PostgreSQL, with and without Redis; then the same with a process that
// is killed in the middle. A call costs $0.00005, which is all that it can cost.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createId } from '../../src/kernel/ids.ts'
import { verify } from '../../src/ledger/verify.ts'
import type { Database } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { ask } from '../parts/ask.ts'
import { startCrashGateway } from '../parts/crash-gateway.ts'
import { createEngine, createThrowAwayFolder, type Place } from '../parts/engines.ts'
import { type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { callManagement } from '../parts/manage.ts'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'
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

type Kind = (typeof kinds)[number]

const body = { model: 'acme/large', max_tokens: 50, user: 'bob', messages: [{ role: 'user', content: 'hi' }] }

const callWith = (url: string, key: string) =>
  ask({ url, key }, chat, inWordsOf(chat, body), { 'x-tollgate-tags': 'team=web' })

/** A key of a person in a group, in a project with the limit. */
async function limitedKey(must: Tenancy['must'], database: Database, kind: Kind) {
  const { id: workspaceId } = await must('POST', '/api/workspaces', { name: 'a tenant' })
  await must('POST', `/api/workspaces/${workspaceId}/topups`, { amount: '1' })
  const { id: projectId } = await must('POST', `/api/workspaces/${workspaceId}/projects`, { name: 'a project' })
  const { id: keyId, secret: key } = await must('POST', `/api/projects/${projectId}/keys`, { name: 'k' })
  const person = createId('per')
  await database.transaction(async (sql) => {
    await sql`INSERT INTO people (id, email, name, created_at) VALUES (${person}, ${`${person}@x.org`}, 'Ada', 0)`
    await sql`INSERT INTO members (id, person_id, workspace_id, role, source, created_at)
      VALUES (${createId('mem')}, ${person}, ${workspaceId}, 'member', 'invitation', 0)`
    await sql`UPDATE api_keys SET owner_id = ${person} WHERE id = ${keyId}`
  })
  await must('POST', `/api/workspaces/${workspaceId}/groups`, { name: 'design', members: [person] })
  await must('PUT', `/api/projects/${projectId}/limits`, { spend_limits: [{ ...kind, limit }] })
  return { projectId, key }
}

/** `later`: others were running, or the machine was too busy. Whoever gets that comes again. */
async function outcomeOf(called: Promise<Response>): Promise<'answered' | 'refused' | 'later'> {
  const reply = await called
  await reply.text()
  if (reply.status === 200) return 'answered'
  if (reply.status === 429 && reply.headers.get('x-should-retry') === 'false') return 'refused'
  expect([429, 503]).toContain(reply.status)
  return 'later'
}

const openBooks = (url: string | undefined, dataFolder: string) => openDatabase({ url, dataFolder, timeoutFactor: 30 })

async function chargedIn({ sql }: Database, projectId: string) {
  const [row] = await sql<{ count: bigint; spent: bigint | null }>`SELECT COUNT(*) AS count,
    CAST(SUM(charge) AS BIGINT) AS spent FROM requests WHERE project_id = ${projectId} AND charge > 0`
  return { count: row?.count ?? 0n, spent: row?.spent ?? 0n }
}

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

  // Redis counts no money: two kinds are enough to see that it changes nothing.
  for (const kind of hasRedis ? kinds.filter(({ window }) => window === '5h') : kinds) {
    test(`${name}: ${Object.values(kind).join(' ')}`, async () => {
      const database = await openBooks(place.url, tenancy.gateway.dataFolder)
      const { projectId, key } = await limitedKey(tenancy.must, database, kind)
      const places = [tenancy.gateway, ...(second ? [second] : [])]
      const call = (at: number) => outcomeOf(callWith((places[at % places.length] as Gateway).url, key))
      const outcomes = await Promise.all(Array.from({ length: callsAtOnce }, (_, at) => call(at)))
      let answered = outcomes.filter((outcome) => outcome === 'answered').length
      for (let tries = 0; ; tries++) {
        const outcome = await call(tries)
        if (outcome === 'refused') break
        if (outcome === 'answered') answered++
        else await Bun.sleep(50)
      }
      // On SQLite they are applied from the journal, soon after the answers.
      while ((await chargedIn(database, projectId)).count < answered) await Bun.sleep(20)
      const { spent } = await chargedIn(database, projectId)
      expect(spent).toBeLessThanOrEqual(limitNano)
      expect(spent).toBeGreaterThanOrEqual((limitNano * 95n) / 100n)
      expect((await verify(database)).findings).toEqual([])
      await database.close()
    })
  }
}

/** The silence after which the ledger declares a process dead on PostgreSQL. */
const silenceMs = 25_000n
/** Of the 160 calls that fit into the limits of all kinds. */
const answeredAtDeath = 40

/** All kinds at once, each 200 times, until a process dies with `kill -9`; it comes again, and so do the callers. */
async function killInTheMiddle(engineName: 'sqlite' | 'postgres', hasRedis: boolean): Promise<void> {
  using folder = createThrowAwayFolder()
  const upstream = startUpstream((_, reply) => reply.json(200, answer))
  await using redis = hasRedis ? await startRedis() : undefined
  const databaseUrl = engineName === 'postgres' ? await (await sharedPostgres()).createDatabase() : undefined
  const configPath = join(folder.path, 'tollgate.yaml')
  writeFileSync(configPath, acmeConfig(upstream.url, outputPriced))
  const env = { ...shared, TOLLGATE_DRAIN_DELAY_SECONDS: '0', ...(redis && { REDIS_URL: redis.url }) }
  const start = (at: number) => {
    const dataFolder = join(folder.path, `replica-${at}`)
    mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
    return startCrashGateway({ dataFolder, databaseUrl, configPath }, { env })
  }
  // One after the other: the first one migrates.
  const gateways = [await start(0)]
  const database = await openBooks(databaseUrl, join(folder.path, 'replica-0'))
  const [dying] = databaseUrl === undefined ? [] : await database.sql<{ id: string }>`SELECT id FROM replicas`
  if (databaseUrl !== undefined) gateways.push(await start(1))
  try {
    const must: Tenancy['must'] = async (...call) => {
      const headers = { authorization: `Bearer ${shared.TOLLGATE_ADMIN_TOKEN}` }
      return JSON.parse(await callManagement(gateways[0]?.url ?? '', headers, call))
    }
    const limited: Awaited<ReturnType<typeof limitedKey>>[] = []
    for (const kind of kinds) limited.push(await limitedKey(must, database, kind))
    let answered = 0
    let death: Promise<void> | undefined
    const call = async (key: string, at: number) => {
      const called = callWith(gateways[at % gateways.length]?.url ?? '', key)
      // It may be killed meanwhile.
      const outcome = await outcomeOf(called).catch(() => 'later' as const)
      if (outcome === 'answered' && ++answered === answeredAtDeath) death = gateways[0]?.kill()
      return outcome
    }
    const atOnce = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, at) => limited.map(({ key }) => call(key, at))).flat())
    while (answered < answeredAtDeath) await atOnce(callsAtOnce)
    await death
    if (dying) {
      await database.transaction(
        (sql) => sql`UPDATE replicas SET heartbeat_at = heartbeat_at - ${silenceMs} WHERE id = ${dying.id}`,
      )
    }
    gateways[0] = await start(0)
    await atOnce(callsAtOnce / 10)
    for (const { key } of limited) {
      // Holds of the dead process may still be in the way.
      for (let tries = 0; ; tries++) {
        const outcome = await call(key, tries)
        if (outcome === 'refused') break
        if (outcome === 'later') await Bun.sleep(50)
      }
    }
    for (const gateway of gateways) expect(await gateway.stop()).toBe(0)
    const spent = await Promise.all(limited.map(({ projectId }) => chargedIn(database, projectId)))
    const shares = spent.map((charged, at) => [kinds[at], charged.spent] as const)
    expect(shares.filter(([, nano]) => nano > limitNano)).toEqual([])
    expect(shares.filter(([, nano]) => nano < (limitNano * 95n) / 100n)).toEqual([])
    expect((await verify(database)).findings).toEqual([])
    expect(gateways.flatMap((gateway) => gateway.errors())).toEqual([])
  } finally {
    for (const gateway of gateways) if (gateway.isAlive()) await gateway.kill()
    await database.close()
    upstream.stop()
  }
}

describe('200 calls at once', () => {
  describe('on sqlite', () => {
    cases('one process', 'sqlite', false)
    test('of every kind, and the process is killed', () => killInTheMiddle('sqlite', false))
  })
  describe.skipIf(findPostgresPrograms() === undefined)('on postgres', () => {
    describe('alone', () => {
      cases('two replicas', 'postgres', false)
      test('of every kind, and one of two replicas is killed', () => killInTheMiddle('postgres', false))
    })
    describe.skipIf(findRedisProgram() === undefined)('and redis', () => {
      cases('two replicas', 'postgres', true)
      test('of every kind, and one of two replicas is killed', () => killInTheMiddle('postgres', true))
    })
  })
})
