import { describe, expect, test } from 'bun:test'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { Failure } from '../kernel/failure.ts'
import type { Usage } from '../kernel/usage.ts'
import type { Admitted } from './admit.ts'
import { Call, type Measured } from './call.ts'
import type { Story } from './story.ts'

/** One that tells how often its prompt was looked at. */
class WatchedCall extends Call {
  reads = 0

  override conversation(): ReturnType<Call['conversation']> {
    this.reads += 1
    return super.conversation()
  }
}

function open(text = 'hi') {
  const body = new TextEncoder().encode(`{"model":"a/b","messages":[{"role":"user","content":"${text}"}]}`)
  const envelope = openaiChat.readEnvelope(body, new Headers())
  if (envelope instanceof Failure) throw new Error(envelope.message)
  const notes: string[] = []
  const admitted = { envelope, model: { contextTokens: 1000, maxOutputTokens: undefined } } as unknown as Admitted
  const story = { surface: openaiChat, record: { notes } } as unknown as Story
  return { call: new WatchedCall(new Request('http://gateway.test'), admitted, story), notes }
}

const usage = (inputTokens: number, outputTokens: number): Usage => ({
  ...{ inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0 },
  source: 'reported',
})
const measured = (more: Partial<Measured>): Measured => ({
  ...{ usage: undefined, usageSoFar: undefined, outputBytes: 100, countedBytes: undefined },
  ...more,
})

test('a host that counts zero in every chunk has its prompt counted once, and is noted once', () => {
  const { call, notes } = open()
  const estimates = [4, 8, 12].map((bytes) => call.finalUsage(usage(0, 0), undefined, () => bytes))
  expect(estimates).toMatchObject([1, 2, 3].map((outputTokens) => ({ inputTokens: 8, outputTokens })))
  expect(call.reads).toBe(1)
  expect(notes).toEqual(['usage as reported cannot be true, estimated instead'])
})

describe('of an answer that ended early counts', () => {
  const cases: readonly [name: string, more: Partial<Measured>, counts: Partial<Usage>][] = [
    ['nothing that was reported, where nothing was', {}, { inputTokens: 8, outputTokens: 25 }],
    ['the input of the start', { usageSoFar: usage(3, 1) }, { inputTokens: 3, outputTokens: 25, inputReported: true }],
    [
      'a count of all that passed, as it is',
      { usageSoFar: usage(3, 7), countedBytes: 100 },
      { inputTokens: 3, outputTokens: 7, source: 'reported' },
    ],
    [
      'a count, and what passed since',
      { usageSoFar: usage(3, 7), countedBytes: 60 },
      { inputTokens: 3, outputTokens: 17, inputReported: true, source: 'estimated' },
    ],
    [
      'the input of a count that knows of no output, though there was some',
      { usageSoFar: usage(3, 0), countedBytes: 60 },
      { inputTokens: 3, outputTokens: 25, inputReported: true },
    ],
    ['no count of zeros, made before there was anything', { usage: usage(0, 0), countedBytes: 0 }, { inputTokens: 8 }],
    [
      'a count of the input, made before there was anything',
      { usage: usage(3, 0), countedBytes: 0 },
      { inputTokens: 3, outputTokens: 25, inputReported: true },
    ],
    [
      'no count that cannot be',
      { usageSoFar: usage(9_999, 7), countedBytes: 100 },
      { inputTokens: 8, outputTokens: 25 },
    ],
  ]
  test.each(cases)('%s', (_, more, counts) => {
    expect(open().call.usageSoFar(measured(more))).toMatchObject(counts)
  })

  test('what was told, before all else', () => {
    const told = usage(3, 7)
    const more = { usage: told, usageSoFar: usage(2, 2), countedBytes: 100 }
    expect(open().call.usageSoFar(measured(more))).toBe(told)
  })
})

describe('once a provider has begun to answer', () => {
  const long = 'a word or two '.repeat(6_000)

  test('a long prompt is let go of where its tokens are known, and whatever asks for them still gets them', () => {
    const { call } = open(long)
    const { bodyBytes, mayHaveMedia } = call
    call.letGo(measured({ usageSoFar: usage(900, 1), outputBytes: 4 }))
    expect([call.envelope.body.length, call.bodyBytes, call.mayHaveMedia]).toEqual([0, bodyBytes, mayHaveMedia])
    expect(call.usageSoFar(measured({}))).toMatchObject({ inputTokens: 900, outputTokens: 25, source: 'estimated' })
    expect(call.finalUsage(usage(0, 0), undefined, () => 4)).toMatchObject({ inputTokens: 900, outputTokens: 1 })
    expect(call.reads).toBe(0)
  })

  test.each([
    ['a short one is kept', 'hi', usage(900, 1)],
    ['as is one of which nothing is known yet', long, undefined],
    ['or nothing that can be true', long, usage(9_999_999, 1)],
  ])('%s', (_, text, usageSoFar) => {
    const { call } = open(text)
    call.letGo(measured({ usageSoFar, outputBytes: 4 }))
    expect(call.envelope.body.length).toBe(call.bodyBytes)
  })
})
