import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { refusalOf } from '../../test/parts/refused.ts'
import { createId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { type SpendLimit, wholeSubject } from '../kernel/spend-limit.ts'
import { createApiKey, createVerifier } from './api-key.ts'
import { listAudit } from './audit.ts'
import { getKey, insertKey } from './keys.ts'
import { pendingRecounts } from './limit-recounts.ts'
import { checkLimits, hasLimits, type Limits, limitsFromSql, limitsToSql, putLimits } from './limits.ts'
import { getProject, getWorkspace, insertProject, insertWorkspace } from './workspaces.ts'

const act = { actor: 'cli', at: 1 }
const spend = (window: SpendLimit['window'], amount: bigint): SpendLimit => ({
  subject: wholeSubject,
  window,
  amount: amount as Nano,
})
const all: Limits = {
  requestsPerMinute: 600,
  tokensPerMinute: 200_000,
  concurrentRequests: 50,
  spend: [spend('day', 1n), spend('month', 10n ** 18n)],
}

/** A nano-dollar and a billion dollars, as people write them. */
const audited = {
  requests_per_minute: 600,
  tokens_per_minute: 200_000,
  concurrent_requests: 50,
  spend_per_day: '0.000000001',
  spend_per_month: '1000000000.00',
}

test('stored limits are read back exactly, and no limits are stored as NULL', () => {
  expect(limitsToSql(all)).toBe(
    '{"requests_per_minute":600,"tokens_per_minute":200000,"concurrent_requests":50,"spend":[{"subject":"all","window":"day","amount":"1"},{"subject":"all","window":"month","amount":"1000000000000000000"}]}',
  )
  expect(limitsFromSql(limitsToSql(all))).toEqual(all)
  expect(limitsToSql({ requestsPerMinute: undefined })).toBeNull()
  expect(hasLimits(limitsFromSql(null))).toBe(false)
})

test('an unreadable stored limit throws', () => {
  for (const broken of [
    '',
    '{"requests_per_minute":"600"}',
    '{"spend":"5"}',
    '{"spend":[{"subject":"all","window":"day","amount":5}]}',
    '{"spend":[{"subject":"all","window":"day","amount":"x"}]}',
    '{"spend":[{"subject":"all","window":"year","amount":"5"}]}',
    '{"spend":[{"subject":"team","window":"day","amount":"5"}]}',
    'null',
  ]) {
    expect(() => limitsFromSql(broken)).toThrow()
  }
})

test('invalid limits are refused by name', async () => {
  expect(checkLimits(all)).toBeUndefined()
  expect(checkLimits({})).toBeUndefined()
  const wrong: [limits: Limits, name: string][] = [
    [{ requestsPerMinute: 0 }, 'requests_per_minute'],
    [{ requestsPerMinute: 1.5 }, 'requests_per_minute'],
    [{ tokensPerMinute: -1 }, 'tokens_per_minute'],
    [{ tokensPerMinute: Number.POSITIVE_INFINITY }, 'tokens_per_minute'],
    [{ tokensPerMinute: 10_000_000_001 }, 'tokens_per_minute'],
    [{ concurrentRequests: Number.NaN }, 'concurrent_requests'],
    [{ spend: [spend('day', 0n)] }, 'spend_per_day'],
    [{ spend: [spend('month', -1n)] }, 'spend_per_month'],
    [{ spend: [spend('month', 10n ** 18n + 1n)] }, 'spend_per_month'],
    [{ spend: [spend('day', 1n), spend('day', 2n)] }, 'spend_per_day'],
    [{ spend: Array(501).fill(spend('day', 1n)) }, 'spend_limits'],
  ]
  for (const [limits, name] of wrong) {
    expect(await refusalOf(() => checkLimits(limits))).toMatchObject({
      code: 'INVALID_REQUEST',
      facts: { param: name },
    })
    expect((await refusalOf(() => checkLimits(limits, 'limits.'))).facts.param).toBe(`limits.${name}`)
  }
})

forEachEngine((_, storeTest) => {
  storeTest('limits of key, project and workspace are replaced as a whole', async ({ database }) => {
    const ids = await database.transaction(async (sql) => {
      const workspace = await insertWorkspace(sql, { name: 'w', createdAt: 0 })
      const project = await insertProject(sql, { workspaceId: workspace, name: 'p', createdAt: 0 })
      const verifier = createVerifier(new Uint8Array(32))
      const row = { projectId: project, name: 'k', key: createApiKey(), createdAt: 0 }
      return { workspace, project, key: await insertKey(sql, row, verifier) }
    })
    const get = { workspace: getWorkspace, project: getProject, key: getKey }
    for (const kind of ['workspace', 'project', 'key'] as const) {
      const put = (limits: Limits) =>
        database.transaction((sql) => putLimits(sql, { kind, id: ids[kind] }, limits, act))
      const stored = () => get[kind](database.sql, ids[kind])
      expect(await put(all)).toEqual(all)
      const pending = { owner: ids[kind], limits: all.spend, startsAt: undefined, setAt: act.at }
      expect(await pendingRecounts(database.sql)).toMatchObject([pending])
      expect(await stored()).toMatchObject({ limits: all })
      expect(await put({ tokensPerMinute: 5 })).toEqual({ tokensPerMinute: 5 })
      expect(await pendingRecounts(database.sql)).toEqual([])
      expect(await stored()).toMatchObject({ limits: { tokensPerMinute: 5 } })
      expect((await refusalOf(put({ tokensPerMinute: 0 }))).facts.param).toBe('tokens_per_minute')
      expect(await put({})).toEqual({})
      expect(hasLimits(((await stored()) as { limits: Limits }).limits)).toBe(false)
      const { items } = await listAudit(database.sql, { limit: 3 })
      expect(items.map(({ action, object, details }) => [action, object, details])).toEqual([
        ['limits.put', ids[kind], {}],
        ['limits.put', ids[kind], { tokens_per_minute: 5 }],
        ['limits.put', ids[kind], audited],
      ])
    }
  })

  storeTest('T2: an unknown id and one of another kind change no limits', async ({ database }) => {
    const workspace = await database.transaction((sql) => insertWorkspace(sql, { name: 'w', createdAt: 0 }))
    const cases = [
      ['key', workspace],
      ['workspace', createId('ws')],
      ['project', '\u0000'],
    ] as const
    for (const [kind, id] of cases) {
      const putting = database.transaction((sql) => putLimits(sql, { kind, id }, all, act))
      expect(await refusalOf(putting)).toMatchObject({ code: 'NOT_FOUND' })
    }
    expect((await listAudit(database.sql, { limit: 1 })).items).toEqual([])
  })
})
