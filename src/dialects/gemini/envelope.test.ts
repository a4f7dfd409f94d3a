import { expect, test } from 'bun:test'
import { Failure } from '../../kernel/failure.ts'
import { expectedInputTokens } from '../../pipeline/estimate.ts'
import { conversationSpans, matchPath, readCallPath, readEnvelope } from './envelope.ts'
import { parseRequest } from './request/parse.ts'

function envelopeOf(body: object) {
  const bytes = new TextEncoder().encode(JSON.stringify(body))
  const envelope = readEnvelope(bytes, new Headers(), '/v1beta/models/m:generateContent')
  if (envelope instanceof Failure) throw new Error(envelope.message)
  return envelope
}

const user = (text: string) => ({ role: 'user', parts: [{ text }] })

test('a conversation is identified by what is the same in each of its turns', () => {
  const identityOf = (body: object) => {
    const envelope = envelopeOf(body)
    return conversationSpans(envelope)
      .map(({ start, end }) => Buffer.from(envelope.body.subarray(start, end)).toString())
      .join()
  }
  const start = { systemInstruction: user('be brief'), tools: [{ functionDeclarations: [{ name: 'f' }] }] }
  const first = identityOf({ ...start, contents: [user('a')] })
  const later = [user('a'), { role: 'model', parts: [{ text: 'b' }] }, user('c')]
  expect(identityOf({ ...start, contents: later })).toBe(first)
  expect(identityOf({ ...start, contents: [user('other')] })).not.toBe(first)
})

test('the data of an image is not counted as text', () => {
  const data = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(300_000)]).toString('base64')
  const envelope = envelopeOf({ contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data } }] }] })
  const parse = () => {
    const parsed = parseRequest(envelope)
    return parsed instanceof Failure ? undefined : parsed.conversation
  }
  // 5,000 for an image, and less than 1,000 bytes around it. As text, its 400,000 bytes would be 100,000 tokens.
  const tokens = expectedInputTokens(envelope.body, 1, parse, { contextTokens: 1_000_000 })
  expect(tokens).toBeGreaterThanOrEqual(5_000)
  expect(tokens).toBeLessThan(6_000)
})

test.each([
  ['/v1beta/models/acme/large:generateContent', 'acme/large'],
  ['/v1beta/acme/large:generateContent', 'acme/large'],
  ['/v1/v1beta/acme%2Flarge:generateContent', 'acme/large'],
  ['/v1/acme/large:free:generateContent', 'acme/large:free'],
  // The prefix is left out once; the rest is the id.
  ['/v1beta/models/models/large:generateContent', 'models/large'],
  ['/v1beta/acme/models/large:generateContent', 'acme/models/large'],
])('%s calls %s', (path, model) => {
  expect(matchPath(path)?.operation).toBe('generate')
  expect(readCallPath(`${path}?alt=sse`)).toEqual({ model, verb: 'generateContent', wantsEvents: true })
})

test.each(['/v1beta/acme/large', '/v1beta/acme/large:predict', '/v1/chat/completions', '/acme/large:generateContent'])(
  '%s is not a path of this surface',
  (path) => {
    expect([matchPath(path), readCallPath(path)]).toEqual([undefined, undefined])
  },
)
