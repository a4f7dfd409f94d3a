// What a host refuses from anybody is cut out of the caller's bytes; the rest of the edits is tested through the byte
// lane.

import { describe, expect, test } from 'bun:test'
import { Failure } from '../../kernel/failure.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { editRequest } from './edit-request.ts'
import { readEnvelope } from './envelope.ts'

function envelopeOf(body: string) {
  const envelope = readEnvelope(new TextEncoder().encode(body))
  if (envelope instanceof Failure) throw new Error(envelope.message)
  return envelope
}

function edited(body: string, rules: TargetRules): string {
  const edits = { upstreamModel: 'up', defaultOutputCap: undefined, rules }
  return new TextDecoder().decode(editRequest(envelopeOf(body), edits))
}

const plain = '"messages":[{"role":"user","content":"hi"}]'

describe('a host that refuses to be asked for usage', () => {
  const rules: TargetRules = { streamUsage: false }

  test('is not asked', () => {
    expect(edited(`{"model":"m","stream":true,${plain}}`, rules)).toBe(`{"model":"up","stream":true,${plain}}`)
    expect(edited(`{"model":"m","stream":true,${plain}}`, {})).toEndWith(',"stream_options":{"include_usage":true}}')
  })

  test.each([
    [`{"stream_options":{"include_usage":true}, "model":"m",${plain}}`, `{"model":"up",${plain}}`],
    [`{"model":"m", "stream_options" : {} ,"stream":true,${plain}}`, `{"model":"up", "stream":true,${plain}}`],
    [`{"model":"m","stream":true,${plain},"stream_options":null}`, `{"model":"up","stream":true,${plain}}`],
  ])('is not asked by the caller either: %s', (body, expected) => {
    expect(edited(body, rules)).toBe(expected)
  })
})

describe('a host that refuses end users', () => {
  const rules: TargetRules = { endUserId: false, streamUsage: false }

  test.each([
    [`{"user":"u","model":"m",${plain}}`, `{"model":"up",${plain}}`],
    [`{"model":"m",${plain},"user":"u","safety_identifier":"s"}`, `{"model":"up",${plain}}`],
    [`{"user":"u","stream_options":{},"model":"m",${plain},"safety_identifier":"s"}`, `{"model":"up",${plain}}`],
  ])('is told of none: %s', (body, expected) => {
    expect(edited(body, rules)).toBe(expected)
  })

  test('everybody else is', () => {
    expect(edited(`{"model":"m",${plain},"user":"u"}`, {})).toBe(`{"model":"up",${plain},"user":"u"}`)
  })

  test('a cap that is added stands behind what was cut', () => {
    const edits = { upstreamModel: 'up', defaultOutputCap: 7, rules }
    const body = envelopeOf(`{"model":"m",${plain},"user":"u"}`)
    expect(new TextDecoder().decode(editRequest(body, edits))).toBe(`{"model":"up",${plain},"max_tokens":7}`)
  })
})

test.each([
  ['"tools":[{}]', true, undefined],
  ['"functions":[{}]', true, undefined],
  ['"tools":[ ]', false, undefined],
  ['"tools":null,"reasoning_effort":"low"', false, 'on'],
  ['"reasoning_effort":"none"', false, 'off'],
  ['"reasoning_effort":null', false, undefined],
] as const)('the envelope of %s says whether tools and reasoning are wanted', (members, offersTools, reasoning) => {
  expect(envelopeOf(`{"model":"m",${plain},${members}}`)).toMatchObject({ offersTools, reasoning })
})
