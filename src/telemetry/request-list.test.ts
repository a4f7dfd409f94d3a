import { expect } from 'bun:test'
import { storeRequests } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import { readingOf } from '../../test/parts/row-counts.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import { listRequests, type RequestQuery, requestsAt, type SortedQuery, sortedPlaces } from './request-log.ts'

const noon = Date.UTC(2026, 10, 15, 12)

const caller = (at: number) => ({
  workspaceId: `ws_${at}` as WorkspaceId,
  projectId: `prj_${at}` as ProjectId,
  keyId: `key_${at}` as KeyId,
})
const [one, two] = [caller(1), caller(2)]

/** By their minute after noon. */
const requests = [
  { minute: 1, caller: one, model: 'acme/large' },
  { minute: 2, caller: two, model: 'acme/large', code: 'LIMIT_EXCEEDED' },
  { minute: 3, caller: one, model: 'acme/small', code: 'PROVIDER_ERROR', totalMs: 61_000 },
  { minute: 4, caller: one, model: undefined, code: 'INVALID_REQUEST' },
  { minute: 5, caller: two, model: 'acme/large', totalMs: 700_000 },
  { minute: 6, caller: one, model: 'acme/large' },
]

const questions: readonly (readonly [Omit<RequestQuery, 'limit'>, readonly number[]])[] = [
  [{ model: 'acme/large' }, [6, 5, 2, 1]],
  [{ model: 'acme/small' }, [3]],
  [{ model: 'acme/none' }, []],
  [{ model: 'acme/large', outcome: 'ok' }, [6, 5, 1]],
  [{ model: 'acme/large', workspaceId: one.workspaceId }, [6, 1]],
  [{ model: 'acme/large', from: noon + 2 * 60_000, to: noon + 6 * 60_000 }, [5, 2]],
  [{ outcome: 'failed' }, [4, 3, 2]],
  [{ outcome: 'failed', workspaceId: one.workspaceId }, [4, 3]],
  [{ outcome: 'failed', keyId: two.keyId }, [2]],
  [{ outcome: 'failed', model: 'acme/large' }, [2]],
  [{ outcome: 'failed', keyId: one.keyId, model: 'acme/small' }, [3]],
  [
    { outcome: 'ok', keyId: two.keyId, workspaceId: two.workspaceId, model: 'acme/large', projectId: two.projectId },
    [5],
  ],
  [{ keyId: one.keyId, projectId: two.projectId }, []],
]

async function minutesOf(database: Database, query: Omit<RequestQuery, 'limit'>): Promise<readonly number[]> {
  const found = await listRequests(database.sql, { limit: 10, ...query })
  return found.map(({ startedAt }) => (startedAt - noon) / 60_000)
}

forEachEngine((_, storeTest) => {
  storeTest('lists are narrowed by any filters', async ({ database }) => {
    await storeRequests(
      database,
      requests.map(({ minute, ...facts }) => ({ startedAt: noon + minute * 60_000, ...facts })),
    )
    for (const [query, found] of questions) {
      expect({ query, found: await minutesOf(database, query) }).toEqual({ query, found: [...found] })
    }
  })

  storeTest('lists are read along the index of their first filter, and SQLite sorts nothing', async ({ database }) => {
    const model = { model: 'acme/large' }
    const ofModel = { ...model, workspaceId: one.workspaceId }
    const lists: readonly (readonly [Omit<RequestQuery, 'limit'>, string])[] = [
      [{ workspaceId: one.workspaceId }, 'requests_by_workspace'],
      [model, 'requests_by_model'],
      [ofModel, 'requests_by_model'],
      [{ ...ofModel, keyId: one.keyId }, 'requests_by_key'],
      [{ ...ofModel, outcome: 'failed' }, 'requests_failed_by_model'],
    ]
    for (const [query, index] of lists) {
      const { steps } = await readingOf(database, ({ sql }) => listRequests(sql, { limit: 50, ...query }))
      if (database.engine === 'postgres') continue
      const others = steps.filter((step) => !step.startsWith('SEARCH ') || !step.includes(` INDEX ${index} (`))
      expect({ query, others, isRead: steps.length > 0 }).toEqual({ query, others: [], isRead: true })
    }
  })

  storeTest('a filter without an index finds its requests far back, page by page', async ({ database }) => {
    // More than are tested at once: the rare ones are at both ends of the log, and one is between.
    const count = 2_600
    const rare = [0, 1, 1_300, count - 1]
    await storeRequests(
      database,
      Array.from({ length: count }, (_, at) => ({
        startedAt: noon + at * 1_000,
        caller: at % 2 === 0 ? one : two,
        ...(rare.includes(at) && {
          session: 'rare',
          agent: 'codex',
          endUser: 'eu_rare',
          tags: ['team=rare'],
          attempts: [{ provider: 'rare', upstreamModel: 'm', outcome: 'ok', startMs: 0, ms: 1 }],
        }),
      })),
    )
    const found = async (query: Omit<RequestQuery, 'limit'>) => {
      const places: number[] = []
      for (let before: RequestQuery['before']; ; ) {
        const page = await listRequests(database.sql, { ...query, limit: 1, ...(before && { before }) })
        places.push(...page.map(({ startedAt }) => (startedAt - noon) / 1_000))
        before = page.at(-1)?.id
        if (before === undefined) return places
      }
    }
    const filters = [{ session: 'rare' }, { agent: 'codex' }, { endUser: 'eu_rare' }, { tag: 'team=rare' }]
    for (const filter of [...filters, { provider: 'rare' }]) {
      expect([filter, await found(filter)]).toEqual([filter, rare.toReversed()])
      expect([filter, await found({ ...filter, keyId: one.keyId })]).toEqual([filter, [1_300, 0]])
      expect([filter, await found({ ...filter, outcome: 'failed' })]).toEqual([filter, []])
      expect([filter, await found({ ...filter, to: noon + 1_000 })]).toEqual([filter, [0]])
    }
  })

  storeTest('a period is exact, although ids are created before the start times', async ({ database }) => {
    // The ids are of noon; the requests started 1 ms before, at and 1 ms after a border of 500 ms later.
    const ids = await storeRequests(database, [{ startedAt: noon }, { startedAt: noon }, { startedAt: noon }])
    for (const [at, id] of ids.entries()) {
      await database.transaction(
        (sql) => sql`UPDATE requests SET started_at = ${BigInt(noon + 499 + at)} WHERE id = ${id}`,
      )
    }
    const listed = async (period: Pick<RequestQuery, 'from' | 'to'>) =>
      (await listRequests(database.sql, { limit: 10, ...period })).map(({ startedAt }) => startedAt - noon)
    expect(await listed({ from: noon + 500 })).toEqual([501, 500])
    expect(await listed({ to: noon + 500 })).toEqual([499])
    expect(await listed({ from: noon + 500, to: noon + 501 })).toEqual([500])
  })

  storeTest('requests are sorted by a value, those without one last, page by page', async ({ database }) => {
    const costs = [30n, undefined, 10n, 30n, 20n, undefined, 0n]
    await storeRequests(
      database,
      costs.map((charge, minute) => ({
        startedAt: noon + minute * 60_000,
        caller: minute % 2 === 0 ? one : two,
        charge: charge as Nano | undefined,
        totalMs: 1000 - minute,
      })),
    )
    const sorted = async (query: Partial<SortedQuery>) => {
      const found: number[] = []
      for (let after: SortedQuery['after']; ; ) {
        const wanted = { sort: 'cost', order: 'desc', limit: 2, ...query, ...(after && { after }) } as const
        const places = await sortedPlaces(database, wanted)
        const requests = await requestsAt(database.sql, places)
        found.push(...requests.map(({ startedAt }) => (startedAt - noon) / 60_000))
        after = places.at(-1)
        if (places.length < 2) return found
      }
    }
    // Of the two with 30 the newer one is first, and so of the two without a cost.
    expect(await sorted({})).toEqual([3, 0, 4, 2, 6, 5, 1])
    expect(await sorted({ order: 'asc' })).toEqual([6, 2, 4, 3, 0, 5, 1])
    expect(await sorted({ sort: 'total_ms' })).toEqual([0, 1, 2, 3, 4, 5, 6])
    expect(await sorted({ sort: 'started_at', order: 'asc', from: noon + 2 * 60_000 })).toEqual([2, 3, 4, 5, 6])
    expect(await sorted({ workspaceId: one.workspaceId })).toEqual([0, 4, 2, 6])
    expect(await sorted({ keyIds: [two.keyId] })).toEqual([3, 5, 1])
  })
})
