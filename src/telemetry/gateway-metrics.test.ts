import { describe, expect, test } from 'bun:test'
import { parseExposition, sampleValue } from '../../test/observe/exposition-parser.ts'
import { answeredRequest, refusedRequest, usageOf } from '../../test/observe/observed-records.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import { addWorkspace } from '../../test/parts/ledger.ts'
import type { ProjectId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { recordFunding } from '../ledger/fund.ts'
import { renderExposition } from './exposition.ts'
import { createRegistry, createRequestMetrics, readWallets, warnedField } from './metrics.ts'
import type { RequestRecord } from './request-record.ts'

async function pageAfter(records: readonly RequestRecord[]) {
  const registry = createRegistry()
  const observe = createRequestMetrics(registry)
  for (const record of records) observe(record)
  const page = parseExposition(renderExposition(await registry.read(), 'text'))
  return (name: string, labels?: Record<string, string>) => sampleValue(page, name, labels)
}

const failedOver = () =>
  answeredRequest({
    attempts: [
      { provider: 'acme', upstreamModel: 'acme-large-v1', outcome: '503', ms: 30 },
      { provider: 'acme-eu', upstreamModel: 'acme-large-v1', outcome: 'ok', ms: 200 },
    ],
    usage: {
      ...usageOf(10, 5),
      cacheReadTokens: 1000,
      cacheWriteTokens: 7,
      cacheWriteLongTokens: 3,
      reasoningTokens: 4,
    },
    charge: 1_550_000n as Nano,
    firstEventMs: 260,
    waitedMs: 230,
    totalMs: 2600,
  })

const thisProject = { dialect: 'openai-chat', model: 'acme/large', project: 'prj_1' }

test('requests are counted by surface, model, the provider that answered, status and project', async () => {
  const other = { keyId: 'key_2', workspaceId: 'ws_1', projectId: 'prj_2' as ProjectId } as const
  const value = await pageAfter([
    answeredRequest(),
    answeredRequest(),
    answeredRequest({ caller: other }),
    failedOver(),
    refusedRequest(),
  ])
  expect(value('tollgate_requests_total', { ...thisProject, provider: 'acme', status: '200' })).toBe(2)
  expect(value('tollgate_requests_total', { ...thisProject, project: 'prj_2', provider: 'acme', status: '200' })).toBe(
    1,
  )
  expect(value('tollgate_requests_total', { ...thisProject, provider: 'acme-eu', status: '200' })).toBe(1)
  const unauthenticated = { dialect: 'anthropic-messages', model: 'none', provider: 'none', project: 'none' }
  expect(value('tollgate_requests_total', { ...unauthenticated, status: '401' })).toBe(1)
  expect(value('tollgate_failures_total', { code: 'UNAUTHORIZED', cause: 'none' })).toBe(1)
})

test('implausible usage is counted by model, provider and what was implausible', async () => {
  const value = await pageAfter([
    answeredRequest({ implausible: { count: 'output', reported: 1 } }),
    answeredRequest({ implausible: { count: 'output', reported: 1 } }),
    answeredRequest({ implausible: { count: 'input', reported: 1 } }),
    answeredRequest(),
  ])
  const route = { model: 'acme/large', provider: 'acme' }
  expect(value('tollgate_implausible_usage_total', { ...route, count: 'output' })).toBe(2)
  expect(value('tollgate_implausible_usage_total', { ...route, count: 'input' })).toBe(1)
})

test('every attempt is counted with how it ended', async () => {
  const value = await pageAfter([answeredRequest(), failedOver(), failedOver()])
  expect(value('tollgate_upstream_attempts_total', { provider: 'acme', outcome: 'ok' })).toBe(1)
  expect(value('tollgate_upstream_attempts_total', { provider: 'acme', outcome: '503' })).toBe(2)
  expect(value('tollgate_upstream_attempts_total', { provider: 'acme-eu', outcome: 'ok' })).toBe(2)
})

test('tokens are counted by kind and never twice, costs to the nano-dollar', async () => {
  const value = await pageAfter([answeredRequest(), failedOver()])
  expect(value('tollgate_tokens_total', { kind: 'input' })).toBe(110)
  expect(value('tollgate_tokens_total', { kind: 'cache_read' })).toBe(1000)
  expect(value('tollgate_tokens_total', { kind: 'cache_write' })).toBe(7)
  expect(value('tollgate_tokens_total', { kind: 'cache_write_1h' })).toBe(3)
  expect(value('tollgate_tokens_total', { kind: 'output' })).toBe(25)
  const labels = { model: 'acme/large', project: 'prj_1' }
  expect(value('tollgate_cost_usd_total', { ...labels, provider: 'acme' })).toBe(0.00045)
  expect(value('tollgate_cost_usd_total', { ...labels, provider: 'acme-eu' })).toBe(0.00155)
})

test('durations are counted in their buckets and added up', async () => {
  const value = await pageAfter([answeredRequest(), answeredRequest({ totalMs: 50, firstEventMs: 20 })])
  const labels = { model: 'acme/large', provider: 'acme' }
  // 1.25 s and 0.05 s; 0.05 belongs to the bucket that ends there.
  expect(value('tollgate_request_duration_seconds_bucket', { ...labels, le: '0.05' })).toBe(1)
  expect(value('tollgate_request_duration_seconds_bucket', { ...labels, le: '1' })).toBe(1)
  expect(value('tollgate_request_duration_seconds_bucket', { ...labels, le: '2.5' })).toBe(2)
  expect(value('tollgate_request_duration_seconds_bucket', { ...labels, le: '+Inf' })).toBe(2)
  expect(value('tollgate_request_duration_seconds_sum', labels)).toBeCloseTo(1.3, 9)
  expect(value('tollgate_request_duration_seconds_count', labels)).toBe(2)
  // 240 ms and 20 ms.
  expect(value('tollgate_time_to_first_token_seconds_bucket', { ...labels, le: '0.025' })).toBe(1)
  expect(value('tollgate_time_to_first_token_seconds_sum', labels)).toBeCloseTo(0.26, 9)
})

test('a whole answer has no first token to time, and counting tokens no duration', async () => {
  const value = await pageAfter([
    answeredRequest({ stream: false }),
    refusedRequest({ path: '/v1/messages/count_tokens', model: 'acme/large' }),
  ])
  expect(value('tollgate_time_to_first_token_seconds_count', { model: 'acme/large', provider: 'acme' })).toBeUndefined()
  expect(value('tollgate_request_duration_seconds_count', { model: 'acme/large', provider: 'acme' })).toBe(1)
  expect(value('tollgate_request_duration_seconds_count', { model: 'acme/large', provider: 'none' })).toBeUndefined()
})

test('the overhead is the time not spent waiting for providers, over all attempts, and never negative', async () => {
  // 240 − 200 = 40 ms; 260 − 230 = 30 ms; a wait above the whole time: 0; 240 − 239.6 = 0.4 ms.
  const value = await pageAfter([
    answeredRequest(),
    failedOver(),
    answeredRequest({ firstEventMs: 199.7 }),
    answeredRequest({ waitedMs: 239.6 }),
    refusedRequest(),
  ])
  expect(value('tollgate_overhead_seconds_count')).toBe(4)
  expect(value('tollgate_overhead_seconds_sum')).toBeCloseTo(0.0704, 9)
  expect(value('tollgate_overhead_seconds_bucket', { le: '0.0005' })).toBe(2)
})

test('the overhead includes the wait for the charge to become durable', async () => {
  // 240 − 200 = 40 ms before the first event, and 6 s for the commit.
  const value = await pageAfter([answeredRequest({ settleMs: 6_000 })])
  expect(value('tollgate_overhead_seconds_sum')).toBeCloseTo(6.04, 9)
})

test('an interrupted stream is a failure with status 200', async () => {
  const value = await pageAfter([answeredRequest({ code: 'STREAM_INTERRUPTED' })])
  expect(value('tollgate_requests_total', { ...thisProject, provider: 'acme', status: '200' })).toBe(1)
  expect(value('tollgate_failures_total', { code: 'STREAM_INTERRUPTED', cause: 'none' })).toBe(1)
})

test('an unknown model and a model whose routes fail are told apart', async () => {
  const missing = { status: 404, code: 'NOT_FOUND' } as const
  const value = await pageAfter([
    refusedRequest({ ...missing, cause: 'unknown_model' }),
    refusedRequest({ ...missing, cause: 'routes_failed' }),
    refusedRequest({ ...missing, cause: 'routes_failed' }),
    refusedRequest({ status: 503, code: 'UNAVAILABLE', cause: 'routes_failed' }),
  ])
  expect(value('tollgate_failures_total', { code: 'NOT_FOUND', cause: 'unknown_model' })).toBe(1)
  expect(value('tollgate_failures_total', { code: 'NOT_FOUND', cause: 'routes_failed' })).toBe(2)
  expect(value('tollgate_failures_total', { code: 'UNAVAILABLE', cause: 'routes_failed' })).toBe(1)
})

test('a rejection by a limit names its source', async () => {
  const limited = { status: 429, code: 'LIMIT_EXCEEDED' }
  const value = await pageAfter([
    refusedRequest(limited),
    refusedRequest({ ...limited, limitSource: 'key requests' }),
    answeredRequest(limited),
    refusedRequest(),
  ])
  expect(value('tollgate_limit_rejections_total', { source: 'gateway' })).toBe(1)
  expect(value('tollgate_limit_rejections_total', { source: 'key requests' })).toBe(1)
  expect(value('tollgate_limit_rejections_total', { source: 'provider' })).toBe(1)
})

test('no label and no line contains a key', async () => {
  const registry = createRegistry()
  createRequestMetrics(registry)(answeredRequest())
  expect(renderExposition(await registry.read(), 'text')).not.toContain('key_1')
})

describe('a warning is counted by its field', () => {
  const cases: Record<string, string> = {
    'name_dropped /messages/3/name': '/messages/*/name',
    'schema_reduced /tools/0/function/parameters/properties/secret_name': '/tools/*/function',
    'seed_dropped /seed': '/seed',
    'image_dropped /messages/12': '/messages/*',
    'metadata_dropped /metadata/customer-7': '/metadata',
  }
  for (const [warning, field] of Object.entries(cases)) {
    test(`${warning} → ${field}`, () => expect(warnedField(warning)).toBe(field))
  }

  test('in its metric', async () => {
    const value = await pageAfter([
      answeredRequest({ warnings: ['a /seed', 'b /messages/1/name', 'b /messages/2/name'] }),
    ])
    expect(value('tollgate_translation_warnings_total', { field: '/seed' })).toBe(1)
    expect(value('tollgate_translation_warnings_total', { field: '/messages/*/name' })).toBe(2)
  })
})

forEachEngine((_, storeTest) => {
  storeTest('wallets are read one by one, the lowest first, and the rest together', async ({ database }) => {
    expect(await readWallets(database)).toEqual([])
    const workspaces: string[] = []
    for (const amount of [50n, 10n, 30n, 20n]) {
      const workspaceId = await addWorkspace(database)
      workspaces.push(workspaceId)
      const funding = { workspaceId, amount: amount as Nano, kind: 'topup', reference: 't' } as const
      await database.transaction((sql) => recordFunding(sql, funding, 1))
    }
    const [fifty, ten, thirty, twenty] = workspaces
    expect(await readWallets(database)).toEqual([
      { workspace: ten ?? '', posted: 10n },
      { workspace: twenty ?? '', posted: 20n },
      { workspace: thirty ?? '', posted: 30n },
      { workspace: fifty ?? '', posted: 50n },
    ])
    expect(await readWallets(database, 2)).toEqual([
      { workspace: ten ?? '', posted: 10n },
      { workspace: twenty ?? '', posted: 20n },
      { workspace: 'other', posted: 80n },
    ])
  })
})
