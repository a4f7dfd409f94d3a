import { expect, test } from 'bun:test'
import { storeRequests } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import { systemClock } from '../kernel/clock.ts'
import type { FaultClass } from '../routing/faults.ts'
import type { AttemptRecord } from './request-record.ts'
import { readRouteHistory } from './route-history.ts'

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
    const routes = await readRouteHistory(store.database, { model: 'acme/large', from: noon, to: noon + 2 * hourMs })
    const found = routes.map(({ provider, upstreamModel, hours }) => [provider, upstreamModel, [...hours].sort()])
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
    const [route] = await readRouteHistory(store.database, { model: 'acme/large', from: noon, to: noon + hourMs })
    expect(route?.hours.get(noon)).toEqual({ ok: 4_100, failed: 0 })
  })
})
