import { expect, test } from 'bun:test'
import { Secret } from '../../kernel/secret.ts'
import { readOtlpSettings } from './settings.ts'

const endpoint = 'http://collector:4318'

test('without an endpoint nothing is sent, and nothing is wrong', () => {
  expect(readOtlpSettings({ OTEL_SERVICE_NAME: 'x' })).toEqual({ settings: undefined, faults: [] })
})

test('an endpoint alone is enough', () => {
  const { settings, faults } = readOtlpSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}//` })
  expect(settings).toEqual({ endpoint, headers: {}, serviceName: 'tollgate', sampleRatio: 1 })
  expect(faults).toEqual([])
})

test('headers are pairs with encoded values, and are kept secret', () => {
  const { settings, faults } = readOtlpSettings({
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: new Secret('Authorization=Basic%20dXNlcjpwYXNz=, x-scope=a,'),
    OTEL_SERVICE_NAME: 'gate-eu',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
  })
  expect(settings?.headers.authorization?.reveal()).toBe('Basic dXNlcjpwYXNz=')
  expect(settings?.headers['x-scope']?.reveal()).toBe('a')
  expect(settings?.serviceName).toBe('gate-eu')
  expect(settings?.sampleRatio).toBe(0.25)
  expect(faults).toEqual([])
  expect(JSON.stringify(settings)).not.toContain('dXNlcjpwYXNz')
})

test('what is wrong is told without its value, and the rest is used', () => {
  const { settings, faults } = readOtlpSettings({
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: new Secret('no-value-hunter2,ok=1,bad=%E0%A4%A,inj=a%0d%0ab'),
    OTEL_TRACES_SAMPLER_ARG: '2',
  })
  expect(Object.keys(settings?.headers ?? {})).toEqual(['ok'])
  expect(settings?.sampleRatio).toBe(1)
  expect(faults.length).toBe(4)
  expect(faults.join()).not.toContain('hunter2')
})

test('an endpoint that is no web address switches sending off and says so', () => {
  for (const wrong of ['collector:4317', 'grpc://collector', 'ftp://x', ' ']) {
    const { settings, faults } = readOtlpSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: wrong })
    expect(settings).toBeUndefined()
    expect(faults.length).toBe(1)
  }
})
