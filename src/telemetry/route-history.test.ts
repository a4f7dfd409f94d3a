import { expect, test } from 'bun:test'
import { storeRequests } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import { systemClock } from '../kernel/clock.ts'
import type { FaultClass } from '../routing/faults.ts'
import type { AttemptRecord } from './request-record.ts'
import { createRouteHistory, findIncidents, type RouteSlots, readRouteHistory, type Slot } from './route-history.ts'

const hourMs = 3_600_000
/** The start of an hour. */
const noon = Date.UTC(2026, 10, 15, 12)

const attempt = (provider: string, outcome: string): AttemptRecord => ({
  provider,
  upstreamModel: 'large',
  outcome,
  ms: 5,
})

/** Classes that say nothing about the route, by the names that routing gives them. */
const neutral: readonly FaultClass[] = [
  "caller's fault",
  'cannot carry the request',
  'client left',
  'had too little time',
  'lacks what was asked for',
  'shut down',
  'superseded',
  'too large',
]

forEachEngine((engine) => {
  test('counts how the attempts at each route of a model ended, by the hour', async () => {
    await using store = await engine.openStore(systemClock)
    const served = (startedAt: number, attempts: AttemptRecord[], model = 'acme/large') => ({
      startedAt,
      attempts,
      model,
    })
    await storeRequests(store.database, [
      // Before the span, and of another model.
      served(noon - 1, [attempt('acme', 'ok')]),
      served(noon, [attempt('acme', 'ok')], 'acme/small'),
      served(noon, [attempt('acme', 'ok')]),
      served(noon + 1, [attempt('acme', 'ok')]),
      // The failed attempt counts although the next route answered.
      served(noon + 2, [attempt('acme', '503'), attempt('bolt', 'ok')]),
      served(noon + hourMs, [attempt('acme', 'interrupted: broken')]),
      // Outcomes that say nothing about the route.
      ...neutral.map((outcome) => served(noon + hourMs, [attempt('acme', outcome)])),
      served(noon + hourMs, [attempt('acme', 'interrupted: client left')]),
      served(noon + hourMs, []),
    ])
    const routes = await readRouteHistory(store.database, {
      model: 'acme/large',
      from: noon,
      to: noon + 2 * hourMs,
      slotMs: hourMs,
    })
    const found = routes.map(({ provider, upstreamModel, slots }) => [
      provider,
      upstreamModel,
      [...slots]
        .filter(([, { ok, failed }]) => ok + failed > 0)
        .map(([start, { ok, failed }]) => [start, { ok, failed }])
        .sort(),
    ])
    expect(found.sort()).toEqual([
      [
        'acme',
        'large',
        [
          [noon, { ok: 2, failed: 1 }],
          [noon + hourMs, { ok: 0, failed: 1 }],
        ],
      ],
      ['bolt', 'large', [[noon, { ok: 1, failed: 0 }]]],
    ])
  })

  test('reads a long log in portions without losing or repeating a request', async () => {
    await using store = await engine.openStore(systemClock)
    const requests = Array.from({ length: 4_100 }, (_, at) => ({
      startedAt: noon + at,
      attempts: [attempt('acme', 'ok')],
      model: 'acme/large',
    }))
    await storeRequests(store.database, requests)
    for (const model of ['acme/large', undefined]) {
      const [route] = await readRouteHistory(store.database, {
        ...(model !== undefined && { model }),
        from: noon,
        to: noon + hourMs,
        slotMs: hourMs,
      })
      expect(route?.slots.get(noon)).toMatchObject({ ok: 4_100, failed: 0 })
    }
  })

  test('reads new requests into a history that it has read before', async () => {
    await using store = await engine.openStore(systemClock)
    const history = createRouteHistory(store.database)
    const dayMs = 24 * hourMs
    const countAt = async (now: number) => {
      const [route] = await history.read(now, now - 29 * dayMs)
      return [...(route?.slots.values() ?? [])].reduce((sum, { ok }) => sum + ok, 0)
    }
    const put = (startedAt: number) =>
      storeRequests(store.database, [
        { startedAt, attempts: [attempt('acme', 'ok')], model: 'acme/large', charge: undefined },
      ])
    await put(noon - 6 * dayMs)
    await put(noon - 2 * hourMs)
    expect(await countAt(noon)).toBe(2)
    await put(noon + 1)
    expect(await countAt(noon + 60_000)).toBe(3)
    // The oldest request is now 31 days old. The second is not read again, the third is.
    await store.database.transaction(async (sql) => {
      await sql`DELETE FROM requests`
    })
    expect(await countAt(noon + 25 * dayMs)).toBe(1)
  })

  test('reads further back when asked to, and finds the same in what it keeps', async () => {
    await using store = await engine.openStore(systemClock)
    const history = createRouteHistory(store.database)
    const dayMs = 24 * hourMs
    const minute = 60_000
    const put = (startedAt: number, outcome: string) => ({
      ...{ startedAt, attempts: [attempt('acme', outcome)], model: 'acme/large', charge: undefined },
      ...(outcome !== 'ok' && { status: 502, code: 'PROVIDER_ERROR' }),
    })
    const quiet = noon - 20 * dayMs
    const failing = noon - 10 * dayMs
    await storeRequests(store.database, [
      put(quiet, 'ok'),
      put(quiet + 20 * minute, 'ok'),
      put(failing, 'ok'),
      ...[20, 21, 26].map((minutes) => put(failing + minutes * minute, '503')),
      put(failing + 40 * minute, 'ok'),
      put(noon - 2 * hourMs, 'ok'),
    ])
    const found = async (now: number, from: number) => {
      const routes = await history.read(now, from)
      const slots = routes.flatMap((route) => [...route.slots.values()])
      const sum = (name: 'ok' | 'failed') => slots.reduce((all, slot) => all + slot[name], 0)
      const incidents = findIncidents(routes, () => false).map(({ startedAt, lastFailedAt }) => [
        startedAt,
        lastFailedAt,
      ])
      return { ok: sum('ok'), failed: sum('failed'), incidents }
    }
    const monthAgo = noon - 29 * dayMs
    const month = { ok: 5, failed: 3, incidents: [[failing + 20 * minute, failing + 26 * minute]] }
    expect(await found(noon, noon - dayMs)).toEqual({ ok: 1, failed: 0, incidents: [] })
    expect(await found(noon + 1, monthAgo)).toEqual(month)
    await store.database.transaction(async (sql) => {
      await sql`DELETE FROM requests`
    })
    expect(await found(noon + minute, monthAgo)).toEqual(month)
    // Two successful slots of an hour are one.
    const [route] = await history.read(noon + 2 * minute, monthAgo)
    expect([...(route?.slots.keys() ?? [])].filter((start) => start < failing)).toEqual([quiet])
  })

  test('finds when a provider failed, why, and what became of the requests', async () => {
    await using store = await engine.openStore(systemClock)
    const minute = 60_000
    const failed = (at: number, outcome: string, ...rest: AttemptRecord[]) => ({
      startedAt: at,
      model: 'acme/large',
      attempts: [attempt('acme', outcome), ...rest],
      ...(rest.length === 0 && { status: 502, code: 'PROVIDER_ERROR' }),
    })
    const ok = (at: number) => ({ startedAt: at, model: 'acme/large', attempts: [attempt('acme', 'ok')] })
    await storeRequests(store.database, [
      ok(noon),
      // Two of three: too few failures for an incident.
      failed(noon + 20 * minute, '503', attempt('bolt', 'ok')),
      ok(noon + 21 * minute),
      failed(noon + 22 * minute, '503', attempt('bolt', 'ok')),
      ok(noon + 30 * minute),
      // Four failures in two slots, and a success that most attempts do not share.
      failed(noon + 40 * minute, '503', attempt('bolt', 'ok')),
      ok(noon + 41 * minute),
      failed(noon + 42 * minute, 'timed out'),
      failed(noon + 46 * minute, '503', attempt('bolt', 'ok')),
      failed(noon + 47 * minute, '503', attempt('bolt', 'ok')),
      ok(noon + 50 * minute),
      // One that pauses the route, and no success since.
      failed(noon + 90 * minute, 'refused our credential'),
    ])
    const now = noon + 100 * minute
    const routes = await readRouteHistory(store.database, { from: noon, to: now, slotMs: 5 * minute })
    const acme = { provider: 'acme', upstreamModels: ['large'] }
    expect(findIncidents(routes, ({ provider }) => provider === 'acme')).toEqual([
      {
        ...acme,
        startedAt: noon + 90 * minute,
        lastFailedAt: noon + 90 * minute,
        isOpen: true,
        causes: [['refused our credential', 1]],
        rescued: 0,
        lost: 1,
      },
      {
        ...acme,
        startedAt: noon + 40 * minute,
        lastFailedAt: noon + 47 * minute,
        isOpen: false,
        causes: [
          ['503', 3],
          ['timed out', 1],
        ],
        rescued: 3,
        lost: 1,
      },
    ])
    // The latest one goes on as long as its route fails, and no longer.
    expect(findIncidents(routes, () => false)[0]?.isOpen).toBe(false)
  })
})

test('incidents of several routes at the same time are one', () => {
  const slot = (firstFailedAt: number, lastFailedAt: number): Slot => ({
    ...{ ok: 0, failed: 3, causes: new Map([['503', 3]]), firstFailedAt, lastFailedAt },
    ...{ rescued: 3, lost: 0, timed: 0, firstEventMs: 0 },
  })
  const route = (upstreamModel: string, at: number, provider = 'acme'): RouteSlots => ({
    ...{ provider, upstreamModel, slots: new Map([[noon, slot(noon + at, noon + at + 100)]]) },
  })
  const found = findIncidents(
    [route('large', 0), route('small', 50), route('tiny', 151), route('large', 50, 'bolt')],
    () => false,
  )
  expect(found.map(({ provider, upstreamModels, startedAt }) => [provider, upstreamModels, startedAt - noon])).toEqual([
    ['acme', ['tiny'], 151],
    ['bolt', ['large'], 50],
    ['acme', ['large', 'small'], 0],
  ])
})
