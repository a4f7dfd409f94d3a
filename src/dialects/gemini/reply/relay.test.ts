// Cases that recorded streams do not have: ends in odd places, failures, and missing usage.

import { expect, test } from 'bun:test'
import { record, said } from '../../../../test/parts/gemini.ts'
import { context as renderContext } from '../../../../test/parts/reply-events.ts'
import { gemini } from '../index.ts'

const context = { ...renderContext, modelJson: new TextEncoder().encode('"a/b"'), envelope: { choices: 1 } }
const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 9 }

function relayed(...records: readonly string[]) {
  const relay = gemini.relayStream(context)
  const passed = records.map((each) => Buffer.from(relay.push(new TextEncoder().encode(each))).toString())
  passed.push(Buffer.from(relay.end()).toString())
  return { relay, passed, terminal: Buffer.from(relay.terminal).toString() }
}

const dataOf = (text: string) => JSON.parse(text.slice('data: '.length)) as Record<string, unknown>

test('usage after the end goes into the last record, and the end passes before it', () => {
  const { relay, passed, terminal } = relayed(said([{ text: 'a' }]), said([], 'STOP'), record({ usageMetadata }))
  expect(passed.map((text) => text.includes('finishReason'))).toEqual([false, false, true, false])
  expect(dataOf(terminal)).toEqual({ usageMetadata: { ...usageMetadata, cost: 0.000012345 } })
  expect([relay.finished, relay.usage?.outputTokens]).toEqual([true, 9])
})

test('STOP in every record: the last one is the end', () => {
  const { relay, passed, terminal } = relayed(said([{ text: 'a' }], 'STOP'), said([{ text: 'b' }], 'STOP'))
  expect(passed.map((text) => /"text":"(.)"/.exec(text)?.[1])).toEqual([undefined, 'a', undefined])
  expect(dataOf(terminal)).toMatchObject({ candidates: [{ content: { parts: [{ text: 'b' }] } }], modelVersion: 'a/b' })
  expect(relay.finished).toBe(true)
})

test('a stream that closes before an end has not finished', () => {
  const { relay } = relayed(said([{ text: 'a' }]))
  expect([relay.meaningful, relay.finished, relay.fault]).toEqual([true, false, undefined])
})

test('a malformed call is a fault that another attempt may not have', () => {
  const { relay, terminal } = relayed(said([], 'MALFORMED_FUNCTION_CALL'))
  expect([relay.finished, relay.meaningful, terminal]).toEqual([false, false, ''])
  expect(relay.fault).toMatchObject({ code: 'MALFORMED_FUNCTION_CALL', isInvalidOutput: true })
})

test('an error after some text is a fault, with the text passed', () => {
  const { relay, passed } = relayed(said([{ text: 'a' }]), record({ error: { code: 503, status: 'UNAVAILABLE' } }))
  expect([relay.meaningful, relay.fault?.status, passed[0]?.includes('"a"')]).toEqual([true, 503, true])
})

test('usage that was not reported is estimated and added', () => {
  const { relay, terminal } = relayed(said([{ text: 'a' }], 'STOP'))
  expect(dataOf(terminal).usageMetadata).toMatchObject({ cost: 0.000012345 })
  expect(relay.usage?.source).toBe('estimated')
})

test.each([
  ['an error', { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'x' } }, 429],
  ['no end', { candidates: [{ content: { parts: [{ text: 'a' }] } }] }, undefined],
  ['an end that is a failure', { candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL' }] }, undefined],
])('a whole reply with %s is a fault', (_, reply, status) => {
  const relayed = gemini.relayReply(new TextEncoder().encode(JSON.stringify(reply)), context)
  expect('fault' in relayed && relayed.fault.status).toBe(status as number)
})
