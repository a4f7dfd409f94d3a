import { describe, expect, test } from 'bun:test'
import { answeredRequest } from '../../test/observe/observed-records.ts'
import { Secret } from '../kernel/secret.ts'
import {
  createBeginTrace,
  createOtlpExporter,
  type OtlpExporterOptions,
  readOtlpSettings,
  readTraceparent,
} from './otlp.ts'
import type { SendOutcome } from './otlp-queue.ts'

interface Sent {
  readonly signal: string
  readonly requests: number
}

/** A collector in memory whose responses, and timers whose ticks, the test controls. */
function createHarness(options: Partial<OtlpExporterOptions> = {}) {
  const sent: Sent[] = []
  const lines: string[] = []
  const rounds: (() => unknown)[] = []
  const answers: (SendOutcome | Promise<SendOutcome>)[] = []
  const exporter = createOtlpExporter({
    settings: { endpoint: 'http://collector', headers: {}, serviceName: 'gate', sampleRatio: 1 },
    clock: { now: () => 1_700_000_000_000, monotonicMs: () => 0 },
    version: '0.1.0',
    instanceId: 'rep_1',
    readMetrics: async () => [],
    report: (line) => lines.push(line),
    every(_, work) {
      rounds.push(work)
      return () => void rounds.splice(rounds.indexOf(work), 1)
    },
    async send(signal, payload) {
      const spans = JSON.stringify(payload).split('"kind":2').length - 1
      sent.push({ signal, requests: spans })
      return (await answers.shift()) ?? { kind: 'sent' }
    },
    ...options,
  })
  const dropped = () => Object.fromEntries(exporter.dropped().map(({ values, value }) => [values[0], value]))
  return { exporter, sent, lines, answers, dropped, rounds }
}

test('nothing is sent before the timer, and then everything in one payload', async () => {
  const { exporter, sent, rounds } = createHarness()
  for (let at = 0; at < 3; at++) exporter.observeRequest(answeredRequest())
  expect(sent).toEqual([])
  await rounds[0]?.()
  expect(sent).toEqual([{ signal: 'traces', requests: 3 }])
  await rounds[0]?.()
  expect(sent.length).toBe(1)
})

test('a full batch does not wait for the timer', async () => {
  const { exporter, sent } = createHarness()
  for (let at = 0; at < 256; at++) exporter.observeRequest(answeredRequest())
  expect(sent).toEqual([{ signal: 'traces', requests: 256 }])
  await exporter.flush()
})

test('a collector that hangs costs only what exceeds the queue', async () => {
  const { exporter, sent, answers, dropped } = createHarness()
  const stuck = Promise.withResolvers<SendOutcome>()
  answers.push(stuck.promise)
  for (let at = 0; at < 2_100; at++) exporter.observeRequest(answeredRequest())
  expect(sent.length).toBe(1)
  // The queue holds 2,048, those that are being sent included.
  expect(dropped().traces).toBe(52)
  stuck.resolve({ kind: 'sent' })
  await exporter.flush()
  expect(sent.filter(({ signal }) => signal === 'traces').map(({ requests }) => requests)).toEqual(Array(8).fill(256))
})

test('a batch is retried twice, then dropped and counted', async () => {
  const { exporter, sent, answers, dropped, rounds, lines } = createHarness()
  const later = { kind: 'later', why: 'status 503' } as const
  answers.push(later, later, later)
  exporter.observeRequest(answeredRequest())
  for (let round = 0; round < 4; round++) await rounds[0]?.()
  expect(sent.map(({ requests }) => requests)).toEqual([1, 1, 1])
  expect(dropped()).toEqual({ traces: 1, metrics: 0, clients: 0 })
  expect(lines.length).toBe(1)
  exporter.observeRequest(answeredRequest())
  await rounds[0]?.()
  expect(lines.length).toBe(2)
  expect(lines[1]).toContain('again')
})

test('a batch that the collector refuses is not retried', async () => {
  const { exporter, sent, answers, dropped, rounds } = createHarness()
  answers.push({ kind: 'refused', why: 'status 400' })
  exporter.observeRequest(answeredRequest())
  await rounds[0]?.()
  await rounds[0]?.()
  expect(sent.length).toBe(1)
  expect(dropped().traces).toBe(1)
})

test('an unsampled trace is not sent, and its request still counts in the metrics', async () => {
  const payloads: string[] = []
  const { exporter } = createHarness({
    settings: { endpoint: 'http://collector', headers: {}, serviceName: 'gate', sampleRatio: 0 },
    send: async (signal, payload) => {
      payloads.push(`${signal} ${JSON.stringify(payload)}`)
      return { kind: 'sent' }
    },
  })
  exporter.observeRequest(answeredRequest({ trace: exporter.beginTrace(null) }))
  await exporter.flush()
  expect(payloads.map((payload) => payload.split(' ')[0])).toEqual(['metrics'])
  expect(payloads[0]).toContain('"name":"gen_ai.client.operation.duration"')
  expect(payloads[0]).toContain('"count":"1"')
})

test('closing sends the queue and stops the timers', async () => {
  const { exporter, sent, rounds } = createHarness()
  exporter.observeRequest(answeredRequest())
  await exporter.close()
  expect(sent.map(({ signal }) => signal).sort()).toEqual(['metrics', 'traces'])
  expect(rounds).toEqual([])
})

test('closing while the collector fails drops the queue and counts it', async () => {
  const { exporter, answers, dropped } = createHarness()
  answers.push({ kind: 'later', why: 'ECONNREFUSED' }, { kind: 'later', why: 'ECONNREFUSED' })
  exporter.observeRequest(answeredRequest())
  await exporter.close()
  expect(dropped()).toEqual({ traces: 1, metrics: 1, clients: 0 })
})

const endpoint = 'http://collector:4318'

test('without an endpoint nothing is sent and nothing is reported', () => {
  expect(readOtlpSettings({ serviceName: 'x' })).toEqual({ settings: undefined, faults: [] })
})

test('an endpoint alone is enough', () => {
  const { settings, faults } = readOtlpSettings({ endpoint: `${endpoint}//` })
  expect(settings).toEqual({ endpoint, headers: {}, serviceName: 'tollgate', sampleRatio: 1 })
  expect(faults).toEqual([])
})

test('headers are pairs with encoded values, and are kept secret', () => {
  const { settings, faults } = readOtlpSettings({
    endpoint,
    headers: new Secret('Authorization=Basic%20dXNlcjpwYXNz=, x-scope=a,'),
    serviceName: 'gate-eu',
    samplerArg: '0.25',
  })
  expect(settings?.headers.authorization?.reveal()).toBe('Basic dXNlcjpwYXNz=')
  expect(settings?.headers['x-scope']?.reveal()).toBe('a')
  expect(settings?.serviceName).toBe('gate-eu')
  expect(settings?.sampleRatio).toBe(0.25)
  expect(faults).toEqual([])
  expect(JSON.stringify(settings)).not.toContain('dXNlcjpwYXNz')
})

test('invalid variables are reported without their value, and the others are used', () => {
  const { settings, faults } = readOtlpSettings({
    endpoint,
    headers: new Secret('no-value-hunter2,ok=1,bad=%E0%A4%A,inj=a%0d%0ab'),
    samplerArg: '2',
  })
  expect(Object.keys(settings?.headers ?? {})).toEqual(['ok'])
  expect(settings?.sampleRatio).toBe(1)
  expect(faults.length).toBe(4)
  expect(faults.join()).not.toContain('hunter2')
})

test('an endpoint that is not an HTTP address disables sending and is reported', () => {
  for (const wrong of ['collector:4317', 'grpc://collector', 'ftp://x', ' ']) {
    const { settings, faults } = readOtlpSettings({ endpoint: wrong })
    expect(settings).toBeUndefined()
    expect(faults.length).toBe(1)
  }
})

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

/** Bytes that count up, so that every id is known: 01 02 03 … */
function countingBytes(first = 1) {
  let next = first
  return (count: number) => Uint8Array.from({ length: count }, () => next++ & 255)
}

test("a caller's trace is continued with its span as the parent", () => {
  const begin = createBeginTrace({ sampleRatio: 0, randomBytes: countingBytes() })
  expect(begin(`00-${traceId}-${spanId}-01`)).toEqual({
    traceId,
    spanId: '0102030405060708',
    parentSpanId: spanId,
    sampled: true,
  })
})

test("a caller's decision not to sample is followed", () => {
  const begin = createBeginTrace({ sampleRatio: 1, randomBytes: countingBytes() })
  expect(begin(`00-${traceId}-${spanId}-00`).sampled).toBe(false)
})

test('without a caller a trace begins here', () => {
  const begin = createBeginTrace({ sampleRatio: 1, randomBytes: countingBytes() })
  expect(begin(null)).toEqual({
    traceId: '0102030405060708090a0b0c0d0e0f10',
    spanId: '1112131415161718',
    parentSpanId: undefined,
    sampled: true,
  })
})

test('sampling depends on the last 48 bits of the trace id', () => {
  const withEnd = (end: number) => (count: number) => new Uint8Array(count).fill(end, 10)
  // 0x7f7f… is below a half, 0x8080… is not.
  expect(createBeginTrace({ sampleRatio: 0.5, randomBytes: withEnd(0x7f) })(null).sampled).toBe(true)
  expect(createBeginTrace({ sampleRatio: 0.5, randomBytes: withEnd(0x80) })(null).sampled).toBe(false)
  expect(createBeginTrace({ sampleRatio: 1, randomBytes: withEnd(0xff) })(null).sampled).toBe(true)
  expect(createBeginTrace({ sampleRatio: 0, randomBytes: withEnd(0) })(null).sampled).toBe(false)
})

describe('a header begins a new trace if it is', () => {
  const bad: Record<string, string> = {
    empty: '',
    short: `00-${traceId.slice(1)}-${spanId}-01`,
    'in capitals': `00-${traceId.toUpperCase()}-${spanId}-01`,
    'of the forbidden version': `ff-${traceId}-${spanId}-01`,
    'of version 00 with more': `00-${traceId}-${spanId}-01-x`,
    'all zeros': `00-${'0'.repeat(32)}-${spanId}-01`,
    'of a zero span': `00-${traceId}-${'0'.repeat(16)}-01`,
    'without flags': `00-${traceId}-${spanId}`,
  }
  for (const [what, header] of Object.entries(bad)) test(what, () => expect(readTraceparent(header)).toBeUndefined())

  test('not if it is of a later version, which may have more', () => {
    expect(readTraceparent(`01-${traceId}-${spanId}-03-more`)).toEqual({ traceId, spanId, sampled: true })
  })
})
