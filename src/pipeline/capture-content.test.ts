import { expect, test } from 'bun:test'
import type { Conversation, Turn } from '../dialects/canonical/conversation.ts'
import { type ContentExportSettings, redactionRules } from '../kernel/content-export.ts'
import { RequestRecord } from '../telemetry/request-record.ts'
import { captureRequest } from './capture-content.ts'
import type { Held } from './stages.ts'

const settings: ContentExportSettings = {
  ...{ url: 'http://collector.test', sampleBasisPoints: 10_000, charactersMax: 1000, isAnnounced: false },
  redact: redactionRules,
}

interface Given {
  readonly conversation?: Partial<Conversation>
  readonly settings?: Partial<ContentExportSettings>
  readonly session?: string
}

function capture({ conversation = {}, settings: changed = {}, session }: Given) {
  const record = new RequestRecord('req_1', 0, '/v1/messages')
  record.session = session
  const content = { conversation: () => ({ system: [], turns: [], tools: [], ...conversation }) }
  const held = {
    exchange: { record, http: { headers: new Headers() } },
    admitted: { envelope: { embeddings: false, upstreamPath: undefined }, content },
  } as unknown as Held
  captureRequest({ ...settings, ...changed }, held)
  return record.content
}

const user = (text: string): Turn => ({ role: 'user', blocks: [{ kind: 'text', text }] })
const inputOf = (given: Given) => JSON.parse(capture(given)?.input ?? 'null')

test('the newest messages are exported, and older ones counted', () => {
  const turns = [user('a'.repeat(600)), user('b'.repeat(400)), user('c'.repeat(400))]
  const captured = capture({ conversation: { turns } })
  const texts = JSON.parse(captured?.input ?? '[]').map(
    ({ parts }: { parts: { content: string }[] }) => parts[0]?.content,
  )
  // Each part counts 40 characters more: 1000 − 2 × 440 leaves 120.
  expect(texts).toEqual([`${'a'.repeat(120)}… [cut]`, 'b'.repeat(400), 'c'.repeat(400)])
  expect(captured?.omitted).toBe(0)
  expect(capture({ conversation: { turns: [user('first'), user('d'.repeat(1000))] } })?.omitted).toBe(1)
})

test('no part of a secret is left where a text is cut', () => {
  const key = `sk-${'a1B2'.repeat(20)}`
  const [message] = inputOf({ conversation: { turns: [user(`${'x'.repeat(990)} ${key}`)] } })
  expect(message.parts[0].content).toBe(`${'x'.repeat(990)} [redacted… [cut]`)
})

test('images and documents are named, and not exported', () => {
  const source = { kind: 'data', mediaType: 'image/png', base64: 'aGVsbG8h' } as const
  const nested: Turn = {
    role: 'user',
    blocks: [
      { kind: 'tool-result', callId: 'c1', isError: false, content: [{ kind: 'image', source }] },
      { kind: 'document', source: { kind: 'text', text: 'ask ada@example.com' } },
      { kind: 'image', source: { kind: 'url', url: 'https://images.test/a.png' } },
    ],
  }
  expect(inputOf({ conversation: { turns: [nested] } })).toEqual([
    {
      role: 'tool',
      parts: [{ type: 'tool_call_response', id: 'c1', response: '[image image/png, 6 bytes, not exported]' }],
    },
    {
      role: 'user',
      parts: [
        { type: 'text', content: 'ask [redacted e-mail]' },
        { type: 'text', content: '[image https://images.test/a.png]' },
      ],
    },
  ])
})

test('only the names of tools are exported if there is no room for them', () => {
  const tools = [{ kind: 'function', name: 'look', description: 'y'.repeat(2000), schema: '{}' }] as const
  expect(capture({ conversation: { tools } })?.tools).toBe('[{"type":"function","name":"look"}]')
})

test('without a collector, or outside the sample, nothing is captured', () => {
  expect(capture({ settings: { url: undefined } })).toBeUndefined()
  expect(capture({ settings: { sampleBasisPoints: 0 } })).toBeUndefined()
})

test('all requests of a conversation are in the sample, or none', () => {
  const isIn = (session: string) => capture({ session, settings: { sampleBasisPoints: 5000 } }) !== undefined
  const names = Array.from({ length: 200 }, (_, at) => `session-${at}`)
  const first = names.map(isIn)
  expect(names.map(isIn)).toEqual(first)
  // Of 200 with a chance of a half; the digests are fixed, so this cannot vary.
  const count = first.filter(Boolean).length
  expect(count).toBeGreaterThan(60)
  expect(count).toBeLessThan(140)
})
