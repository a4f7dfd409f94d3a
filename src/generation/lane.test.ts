import { expect, test } from 'bun:test'
import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { Failure } from '../kernel/failure.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { Call } from './call.ts'
import { openLane } from './lane.ts'

function laneOf(members: object, rules: TargetRules) {
  const body = new TextEncoder().encode(
    JSON.stringify({ model: 'a/b', messages: [{ role: 'user', content: 'hi' }], ...members }),
  )
  const request = new Request('http://x', { method: 'POST' })
  const envelope = openaiChat.readEnvelope(body, request.headers)
  if (envelope instanceof Failure) throw new Error(envelope.message)
  const record: { lane?: string } = {}
  const call = {
    ...{ request, envelope, surface: openaiChat, model: { defaultMaxTokens: 8000 }, story: { record } },
    conversation: () => openaiChat.translation.parseRequest(envelope),
  } as unknown as Call
  const candidate = {
    ...{ dialect: openaiChat, rules, provider: { id: 'p' }, endpoint: { dialect: 'openai-chat' } },
    route: { upstreamModel: 'up' },
  } as unknown as Candidate
  const lane = openLane(call, candidate)
  if (lane instanceof Failure) throw new Error(lane.message)
  return { lane: record.lane, ...JSON.parse(new TextDecoder().decode(lane.body)), asks: lane.streamsUpstream }
}

const rules: TargetRules = { unstreamedOutputMax: 4096 }

test('pitfall 179: a long answer is asked for as a stream where the host gives it no other way', () => {
  expect(laneOf({ max_tokens: 4097 }, rules)).toMatchObject({ lane: 'translation', stream: true, asks: true })
  // Who says nothing gets the model's usual answer, which is long.
  expect(laneOf({}, rules)).toMatchObject({ lane: 'translation', stream: true, max_tokens: 8000 })
})

test('pitfall 179: a short one, one that streams anyway, and any at other hosts pass as they came', () => {
  expect(laneOf({ max_tokens: 4096 }, rules)).toMatchObject({ lane: 'bytes', asks: false })
  expect(laneOf({ max_tokens: 9000, stream: true }, rules)).toMatchObject({ lane: 'bytes', asks: true })
  expect(laneOf({ max_tokens: 9000 }, {})).toMatchObject({ lane: 'bytes', asks: false })
})
