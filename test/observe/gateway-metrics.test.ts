import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { renderExposition } from '../../src/telemetry/exposition.ts'
import { parseExposition, sampleValue } from './exposition-parser.ts'
import { openGatewayMetrics } from './gateway-page.ts'
import { answeredRequest } from './observed-records.ts'

type Metrics = ReturnType<typeof openGatewayMetrics>

async function pageOf({ registry }: Metrics) {
  const page = parseExposition(renderExposition(await registry.read(), 'text'))
  return (name: string, labels?: Record<string, string>) => sampleValue(page, name, labels)
}

test('state is reported in seconds and dollars', async () => {
  const value = await pageOf(openGatewayMetrics())
  expect(value('tollgate_wallet_balance_usd', { workspace: 'ws_1' })).toBe(5)
  expect(value('tollgate_wallet_held_usd')).toBe(1.5)
  expect(value('tollgate_open_holds')).toBe(2)
  expect(value('tollgate_oldest_hold_seconds')).toBe(12)
  expect(value('tollgate_ledger_commits_total')).toBe(40)
  expect(value('tollgate_ledger_commit_failures_total')).toBe(1)
  expect(value('tollgate_ledger_commit_seconds_total')).toBe(0.25)
  expect(value('tollgate_ledger_commit_last_seconds')).toBe(0.005)
  expect(value('tollgate_charges_total')).toBe(90)
  expect(value('tollgate_estimated_charges_total')).toBe(3)
  expect(value('tollgate_overrun_charges_total')).toBe(1)
  expect(value('tollgate_written_off_usd_total')).toBe(0.02)
  expect(value('tollgate_reaped_holds_total', { sent: 'yes' })).toBe(1)
  expect(value('tollgate_reaped_holds_total', { sent: 'no' })).toBe(3)
  expect(value('tollgate_unpriced_models')).toBe(1)
  expect(value('tollgate_retry_budget')).toBe(3.2)
  expect(value('tollgate_retries_refused_total')).toBe(7)
  expect(value('tollgate_limiter_mode')).toBe(1)
  expect(value('tollgate_log_lines_dropped_total')).toBe(6)
  expect(value('tollgate_request_records_lost_total')).toBe(8)
  expect(value('tollgate_telemetry_dropped_total', { signal: 'traces' })).toBe(9)
  expect(value('process_start_time_seconds')).toBe(1_700_000_000)
  expect(value('tollgate_build_info', { version: '0.1.0', engine: 'sqlite' })).toBe(1)
  expect(value('process_resident_memory_bytes')).toBeGreaterThan(1e6)
})

test('shows the worst of several routes with the same labels', async () => {
  const value = await pageOf(openGatewayMetrics())
  expect(value('tollgate_route_state', { model: 'acme/large', provider: 'acme' })).toBe(3)
  expect(value('tollgate_route_state', { model: 'acme/large', provider: 'acme-eu' })).toBe(4)
})

test('running streams are a gauge, rejected files a counter', async () => {
  const metrics = openGatewayMetrics()
  metrics.streamOpened()
  metrics.streamOpened()
  metrics.streamClosed()
  metrics.configRefused()
  const value = await pageOf(metrics)
  expect(value('tollgate_active_streams')).toBe(1)
  expect(value('tollgate_config_reload_failures_total')).toBe(1)
})

test('an unreachable database omits only its own metric, and the next read reports it', async () => {
  const metrics = openGatewayMetrics({ wallets: () => Promise.reject(new Error('away')) })
  await metrics.registry.read()
  const value = await pageOf(metrics)
  expect(value('tollgate_wallet_balance_usd', { workspace: 'ws_1' })).toBeUndefined()
  expect(value('tollgate_wallet_held_usd')).toBe(1.5)
  expect(value('tollgate_metrics_read_failures_total', { metric: 'tollgate_wallet_balance_usd' })).toBe(1)
})

test('the event loop delay is how late a timer fires', async () => {
  let nowMs = 1000
  let tick: () => unknown = () => undefined
  const metrics = openGatewayMetrics({
    clock: { now: () => 0, monotonicMs: () => nowMs },
    every(milliseconds, work) {
      expect(milliseconds).toBe(100)
      tick = work
      return () => {}
    },
  })
  for (const passedMs of [100, 130, 99]) {
    nowMs += passedMs
    tick()
  }
  const value = await pageOf(metrics)
  expect(value('tollgate_event_loop_delay_seconds_count')).toBe(3)
  expect(value('tollgate_event_loop_delay_seconds_sum')).toBeCloseTo(0.03, 9)
})

test('the number of series is bounded with many projects', async () => {
  const metrics = openGatewayMetrics()
  for (let at = 0; at < 5_000; at++) {
    metrics.observeRequest(answeredRequest({ caller: { keyId: 'key_1', workspaceId: 'ws_1', projectId: `prj_${at}` } }))
  }
  const page = parseExposition(renderExposition(await metrics.registry.read(), 'text'))
  const samples = page.get('tollgate_requests_total')?.samples ?? []
  expect(samples.length).toBe(2_001)
  expect(samples.reduce((sum, { value }) => sum + value, 0)).toBe(5_000)
  const rest = { dialect: 'openai-chat', model: 'other', provider: 'other', status: '200', project: 'other' }
  expect(sampleValue(page, 'tollgate_requests_total', rest)).toBe(3_000)
  expect(sampleValue(page, 'tollgate_metrics_folded_total', { metric: 'tollgate_requests_total' })).toBe(3_000)
})

test('the documentation describes exactly the existing metrics and labels', async () => {
  const text = await Bun.file(join(import.meta.dir, '../../docs/operate/observe.md')).text()
  const described = new Map<string, string>()
  for (const [, name = '', labels = ''] of text.matchAll(
    /^\| `((?:tollgate|process)_[a-z0-9_]+)(?:\{([a-z,]+)\})?` \|/gm,
  )) {
    described.set(name, labels)
  }
  const readings = await openGatewayMetrics().registry.read()
  const real = new Map(readings.map(({ name, labels }) => [name, labels.join(',')]))
  expect(Object.fromEntries(described)).toEqual(Object.fromEntries(real))
})

test('alerts in the documentation use existing metrics', async () => {
  const text = await Bun.file(join(import.meta.dir, '../../docs/operate/observe.md')).text()
  const alerts = text.slice(text.indexOf('### Alerts'), text.indexOf('## Dashboard'))
  const named = [...new Set(alerts.match(/\btollgate_[a-z0-9_]+/g) ?? [])]
  const real = (await openGatewayMetrics().registry.read()).map(({ name }) => name)
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter((name) => !real.includes(name))).toEqual([])
})

test('the promised metric names exist', async () => {
  const promised = {
    tollgate_requests_total: 'dialect,model,provider,status,project',
    tollgate_request_duration_seconds: undefined,
    tollgate_time_to_first_token_seconds: undefined,
    tollgate_overhead_seconds: undefined,
    tollgate_tokens_total: 'kind',
    tollgate_cost_usd_total: undefined,
    tollgate_upstream_attempts_total: 'provider,outcome',
    tollgate_route_state: 'model,provider',
    tollgate_wallet_balance_usd: undefined,
    tollgate_wallet_held_usd: undefined,
    tollgate_oldest_hold_seconds: undefined,
    tollgate_limit_rejections_total: 'source',
    tollgate_translation_warnings_total: 'field',
    tollgate_unpriced_models: undefined,
    tollgate_active_streams: undefined,
    tollgate_config_reload_failures_total: undefined,
  }
  const readings = await openGatewayMetrics().registry.read()
  const real = new Map(readings.map(({ name, labels }) => [name, labels.join(',')]))
  for (const [name, labels] of Object.entries(promised)) {
    expect([name, real.has(name)]).toEqual([name, true])
    if (labels !== undefined) expect([name, real.get(name)]).toEqual([name, labels])
  }
})
