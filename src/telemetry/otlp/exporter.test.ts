import { expect, test } from 'bun:test'
import { answeredRequest } from '../../../test/observe/observed-records.ts'
import { createOtlpExporter, type OtlpExporterOptions } from './exporter.ts'
import type { SendOutcome } from './send.ts'

interface Sent {
  readonly signal: string
  readonly requests: number
}

/** A collector in memory that answers as it is told, and timers that fire when they are told. */
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

test('nothing is sent before the timer, and then everything at once', async () => {
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

test('a collector that hangs costs what exceeds the queue, and no request waits', async () => {
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

test('a collector in trouble is offered the same again twice, then the batch is dropped and counted', async () => {
  const { exporter, sent, answers, dropped, rounds, lines } = createHarness()
  const later = { kind: 'later', why: 'status 503' } as const
  answers.push(later, later, later)
  exporter.observeRequest(answeredRequest())
  for (let round = 0; round < 4; round++) await rounds[0]?.()
  expect(sent.map(({ requests }) => requests)).toEqual([1, 1, 1])
  expect(dropped()).toEqual({ traces: 1, metrics: 0 })
  expect(lines.length).toBe(1)
  exporter.observeRequest(answeredRequest())
  await rounds[0]?.()
  expect(lines.length).toBe(2)
  expect(lines[1]).toContain('again')
})

test('what a collector refuses is not offered again', async () => {
  const { exporter, sent, answers, dropped, rounds } = createHarness()
  answers.push({ kind: 'refused', why: 'status 400' })
  exporter.observeRequest(answeredRequest())
  await rounds[0]?.()
  await rounds[0]?.()
  expect(sent.length).toBe(1)
  expect(dropped().traces).toBe(1)
})

test('a trace that is not kept is not sent, and its request still counts in the metrics', async () => {
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

test('closing sends what is left, and stops the timers', async () => {
  const { exporter, sent, rounds } = createHarness()
  exporter.observeRequest(answeredRequest())
  await exporter.close()
  expect(sent.map(({ signal }) => signal).sort()).toEqual(['metrics', 'traces'])
  expect(rounds).toEqual([])
})

test('closing while the collector is in trouble gives up and counts', async () => {
  const { exporter, answers, dropped } = createHarness()
  answers.push({ kind: 'later', why: 'ECONNREFUSED' }, { kind: 'later', why: 'ECONNREFUSED' })
  exporter.observeRequest(answeredRequest())
  await exporter.close()
  expect(dropped()).toEqual({ traces: 1, metrics: 1 })
})
