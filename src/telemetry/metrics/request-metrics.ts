// What requests come to: counted once per request, from its finished record, without allocating for what was seen
// before. Labels name projects, never keys.

import { wholeBuckets } from '../../kernel/usage.ts'
import type { RequestRecord } from '../request-record.ts'
import { dialectOf, isGeneration, limitSourceOf, none, overheadMs, warnedField } from './observed-request.ts'
import type { MetricRegistry } from './registry.ts'

export type ObserveRequest = (record: RequestRecord) => void

/** From a cached word to a long piece of reasoning. */
const durationBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640]
const firstTokenBounds = [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 60]
const overheadBounds = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1]
/** Of a histogram, each of which has some fifteen lines. */
const timedSeriesMax = 400
const fieldsMax = 200

export function createRequestMetrics(registry: MetricRegistry): ObserveRequest {
  const count = countRequest(registry)
  const time = timeRequest(registry)
  const spend = countSpend(registry)
  const attempts = registry.counter({
    name: 'tollgate_upstream_attempts_total',
    help: 'Upstream calls by how they ended: ok, the status, or the class of the failure.',
    labels: ['provider', 'outcome'],
  })
  const warnings = registry.counter({
    name: 'tollgate_translation_warnings_total',
    help: 'Fields that a translation dropped or approximated.',
    labels: ['field'],
    seriesMax: fieldsMax,
  })
  const implausible = registry.counter({
    name: 'tollgate_implausible_usage_total',
    help: 'Requests whose provider reported usage that cannot be true, by the count that was replaced by an estimate.',
    labels: ['model', 'provider', 'count'],
  })
  return (record) => {
    count(record)
    if (isGeneration(record)) time(record)
    spend(record)
    for (const { provider, outcome } of record.attempts) attempts.find(provider, outcome).add(1)
    const { implausibleUsage } = record
    if (implausibleUsage !== undefined)
      implausible.find(record.model ?? none, providerOf(record), implausibleUsage).add(1)
    for (const warning of record.warnings) warnings.find(warnedField(warning)).add(1)
  }
}

function countRequest(registry: MetricRegistry): ObserveRequest {
  const requests = registry.counter({
    name: 'tollgate_requests_total',
    help: 'Requests by how they ended. Status 499: the client left. A stream that broke off has 200 and a failure.',
    labels: ['dialect', 'model', 'provider', 'status', 'project'],
    keep: ['dialect', 'status'],
  })
  const failures = registry.counter({
    name: 'tollgate_failures_total',
    help: 'Failures that callers were told of, also inside a stream.',
    labels: ['code'],
  })
  const rejections = registry.counter({
    name: 'tollgate_limit_rejections_total',
    help: 'Requests refused with 429: by a limit of this gateway, or since every route was throttled by its provider.',
    labels: ['source'],
  })
  const statusTexts = new Map<number, string>()
  const statusText = (status: number): string => {
    const known = statusTexts.get(status)
    if (known !== undefined) return known
    const text = String(status)
    statusTexts.set(status, text)
    return text
  }
  return (record) => {
    const { model = none, caller, code, status } = record
    const project = caller?.projectId ?? none
    requests.find(dialectOf(record), model, providerOf(record), statusText(status), project).add(1)
    if (code !== undefined) failures.find(code).add(1)
    const source = limitSourceOf(record)
    if (source !== undefined) rejections.find(source).add(1)
  }
}

function timeRequest(registry: MetricRegistry): ObserveRequest {
  const labels = ['model', 'provider']
  const durations = registry.histogram({
    name: 'tollgate_request_duration_seconds',
    help: 'From the arrival of a generation to its last byte.',
    labels,
    bounds: durationBounds,
    seriesMax: timedSeriesMax,
  })
  const firstTokens = registry.histogram({
    name: 'tollgate_time_to_first_token_seconds',
    help: 'From the arrival of a streamed generation to its first meaningful event.',
    labels,
    bounds: firstTokenBounds,
    seriesMax: timedSeriesMax,
  })
  const overheads = registry.histogram({
    name: 'tollgate_overhead_seconds',
    help: "The gateway's own part of the time before the first event: all of it, without waiting for providers.",
    bounds: overheadBounds,
  })
  return (record) => {
    const { model = none, firstEventMs, stream } = record
    const provider = providerOf(record)
    durations.find(model, provider).observe(record.totalMs / 1000)
    if (stream && firstEventMs !== undefined) firstTokens.find(model, provider).observe(firstEventMs / 1000)
    const ownMs = overheadMs(record)
    if (ownMs !== undefined) overheads.find().observe(ownMs / 1000)
  }
}

function countSpend(registry: MetricRegistry): ObserveRequest {
  const tokens = registry.counter({
    name: 'tollgate_tokens_total',
    help: 'Tokens of charged requests, in kinds that never overlap; output includes reasoning.',
    labels: ['kind'],
  })
  const kinds = wholeBuckets.map(({ bucket, count }) => ({ count, cell: tokens.find(bucket) }))
  const costs = registry.counter({
    name: 'tollgate_cost_usd_total',
    help: 'What requests were charged.',
    labels: ['model', 'provider', 'project'],
    perUnit: 1e9,
  })
  return (record) => {
    const { usage, charge, model = none, caller } = record
    if (usage) for (const { count, cell } of kinds) cell.add(usage[count] ?? 0)
    if (charge === undefined) return
    costs.find(model, providerOf(record), caller?.projectId ?? none).add(Number(charge))
  }
}

function providerOf({ attempts }: RequestRecord): string {
  return attempts[attempts.length - 1]?.provider ?? none
}
