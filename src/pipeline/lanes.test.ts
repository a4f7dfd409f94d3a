import { expect, test } from 'bun:test'
import { received } from '../../test/parts/http.ts'
import { freePrice } from '../catalog/price.ts'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { openaiResponses } from '../dialects/openai-responses/index.ts'
import { Failure } from '../kernel/failure.ts'
import type { Candidate } from '../routing/plan.ts'
import { openLane } from './lanes.ts'
import type { Meter } from './meter.ts'
import type { Held } from './stages.ts'

const deps = {
  deriveCacheKey: () => 'derived',
  settings: { current: { sessions: { cacheMarks: true, keepReasoning: false } } },
}

function openedLane(
  members: object,
  rules: TargetRules,
  headers: Record<string, string> = {},
  more?: Partial<Candidate>,
  model?: object,
) {
  const body = new TextEncoder().encode(
    JSON.stringify({ model: 'a/b', messages: [{ role: 'user', content: 'hi' }], ...members }),
  )
  const http = received(new Request('http://x', { method: 'POST', headers }))
  const sent = openaiChat.readEnvelope(body, http.headers)
  if (sent instanceof Failure) throw new Error(sent.message)
  const held = {
    exchange: { http, surface: openaiChat },
    admitted: {
      envelope: sent.envelope,
      content: { sent, parsed: () => openaiChat.translation.parseRequest(sent) },
      ...{ caller: {}, session: {} },
    },
    hold: {},
  } as unknown as Held
  const candidate = {
    model: { price: freePrice, defaultMaxTokens: 8000, maxOutputTokens: 10_000, ...model },
    ...{ dialect: openaiChat, rules, provider: { id: 'p' }, endpoint: { dialect: 'openai-chat' } },
    route: { upstreamModel: 'up' },
    ...more,
  } as unknown as Candidate
  return openLane(deps, held, candidate, {} as Meter)
}

function laneOf(members: object, rules: TargetRules) {
  const lane = openedLane(members, rules)
  if (lane instanceof Failure) throw new Error(lane.message)
  return {
    lane: lane.name,
    warnings: lane.warnings,
    ...JSON.parse(new TextDecoder().decode(lane.body)),
    asks: lane.streamsUpstream,
  }
}

const rules: TargetRules = { unstreamedOutputMax: 4096 }

test('pitfall 179: requests a long answer as a stream if the host requires it', () => {
  expect(laneOf({ max_tokens: 4097 }, rules)).toMatchObject({ lane: 'translation', stream: true, asks: true })
  // Who says nothing gets the model's usual answer, which is long.
  expect(laneOf({}, rules)).toMatchObject({ lane: 'translation', stream: true, max_tokens: 8000 })
})

test('pitfall 179: leaves short answers, streams and other hosts on the byte lane', () => {
  expect(laneOf({ max_tokens: 4096 }, rules)).toMatchObject({ lane: 'bytes', asks: false })
  expect(laneOf({ max_tokens: 9000, stream: true }, rules)).toMatchObject({ lane: 'bytes', asks: true })
  expect(laneOf({ max_tokens: 9000 }, {})).toMatchObject({ lane: 'bytes', asks: false })
})

test('lowers what is not held for, on both lanes, with a warning', () => {
  const clamped = { code: 'max_tokens_clamped', field: '/max_tokens' }
  const asked = { max_tokens: 50_000 }
  for (const [lane, limits] of [
    ['bytes', {}],
    ['translation', rules],
  ] as const) {
    expect(laneOf(asked, limits)).toMatchObject({ lane, max_tokens: 10_000, warnings: [clamped] })
    expect(laneOf({ max_tokens: 10_000 }, limits)).toMatchObject({ lane, max_tokens: 10_000, warnings: [] })
    expect(openedLane(asked, limits, { 'x-tollgate-strict': 'true' })).toBeInstanceOf(Failure)
  }
})

test('sends a cache key for the session to hosts that use one, unless the caller sent one, on both lanes', () => {
  const noted = [{ code: 'prompt_cache_key_dropped', field: '/prompt_cache_key' }]
  const cases: readonly [TargetRules, object, string | undefined, object[]][] = [
    [{ promptCacheKey: true }, {}, 'derived', []],
    [{ promptCacheKey: true }, { prompt_cache_key: null }, 'derived', []],
    [{ promptCacheKey: true }, { prompt_cache_key: 'mine' }, 'mine', []],
    [{}, {}, undefined, []],
    [{}, { prompt_cache_key: 'mine' }, 'mine', []],
    [{ promptCacheKey: false }, {}, undefined, []],
    [{ promptCacheKey: false }, { prompt_cache_key: 'mine' }, undefined, noted],
  ]
  for (const [rule, members, key, warnings] of cases) {
    for (const [lane, limits] of [['bytes', {}] as const, ['translation', rules] as const]) {
      const sent = laneOf(members, { ...limits, ...rule })
      expect([lane, sent.lane, sent.prompt_cache_key, sent.warnings]).toEqual([lane, lane, key, warnings])
    }
  }
})

test('places cache marks, unless the model, the installation or the caller turns them off', () => {
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'ho' },
    { role: 'user', content: 'go on' },
  ]
  const marksIn = (headers: Record<string, string>, model: object, options = {}) => {
    const more = { dialect: anthropicMessages } as unknown as Partial<Candidate>
    const members = { messages, ...options }
    const lane = openedLane(members, { cachesOnlyMarked: true }, headers, more, model)
    if (lane instanceof Failure) throw new Error(lane.message)
    const marks = new TextDecoder().decode(lane.body).match(/cache_control/g)?.length ?? 0
    return [marks, ...lane.warnings.map(({ code }) => code)]
  }
  expect(marksIn({}, {})).toEqual([2])
  expect(marksIn({ 'x-tollgate-cache-marks': 'Off' }, {})).toEqual([0])
  expect(marksIn({}, { cacheMarks: false })).toEqual([0])
  // An option that the route does not support is named in a warning.
  const options = { prompt_cache_options: { mode: 'implicit' } }
  expect(marksIn({}, { cacheMarks: false }, options)).toEqual([0, 'prompt_cache_options_dropped'])
  expect(marksIn({}, { cacheMarks: false }, { prompt_cache_options: { mode: 'explicit' } })).toEqual([0])
})

test('passes costly options on the workspace’s own credential, which the provider bills', () => {
  const lane = openedLane({ max_tokens: 9, service_tier: 'priority' }, {}, {}, { isOwn: true })
  if (lane instanceof Failure) throw new Error(lane.message)
  expect(lane.warnings).toEqual([])
  expect(JSON.parse(new TextDecoder().decode(lane.body)).service_tier).toBe('priority')
})

test.each<[string, boolean, object, TargetRules, object]>([
  ['a short answer', false, { max_tokens: 8000 }, {}, {}],
  ['the model’s usual answer, if it is short', false, {}, {}, {}],
  ['a cap above the model’s maximum', false, { max_tokens: 50_000 }, {}, { maxOutputTokens: 4000 }],
  ['the model’s maximum, if no cap is sent', false, {}, {}, { defaultMaxTokens: undefined, maxOutputTokens: 4000 }],
  ['no cap at all', true, {}, {}, { defaultMaxTokens: undefined, maxOutputTokens: undefined }],
  ['a long answer', true, { max_tokens: 8001 }, {}, {}],
  ['an answer that the host only streams', true, { max_tokens: 4097 }, rules, {}],
  ['reasoning on top of the cap', true, { max_tokens: 9 }, { capExcludesReasoning: true }, {}],
  ['stop sequences, which the gateway may match itself', true, { max_tokens: 9, stop: ['x'] }, {}, {}],
  ['a caller who streams', true, { max_tokens: 9, stream: true }, {}, {}],
])('translates %s with stream: %p', (_, asks, members, limits, model) => {
  const lane = openedLane(members, limits, {}, { dialect: openaiResponses }, model)
  if (lane instanceof Failure) throw new Error(lane.message)
  expect(lane).toMatchObject({ name: 'translation', streamsUpstream: asks })
  expect(lane.generationMs > 0).toBe(!asks)
  expect(JSON.parse(new TextDecoder().decode(lane.body))).toMatchObject({ stream: asks })
})
