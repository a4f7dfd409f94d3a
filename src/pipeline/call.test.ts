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

interface Opened {
  readonly text?: string
  /** More members of the body, as JSON. */
  readonly members?: string
  readonly model?: object
  readonly rules?: object
  /** The cap that the wallet pays for. */
  readonly lowered?: number
}

function open({ text = 'hi', members = '', model = {}, rules = {}, lowered }: Opened = {}) {
  const body = new TextEncoder().encode(
    `{"model":"a/b","messages":[{"role":"user","content":"${text}"}]${members === '' ? '' : `,${members}`}}`,
  )
  const envelope = openaiChat.readEnvelope(body, new Headers())
  if (envelope instanceof Failure) throw new Error(envelope.message)
  const notes: string[] = []
  const admitted = {
    envelope,
    model: { contextTokens: 1000, maxOutputTokens: undefined, price: {}, ...model },
  } as unknown as Admitted
  const story = { surface: openaiChat, record: { notes }, candidate: { rules } } as unknown as Story
  const call = new WatchedCall(new Request('http://gateway.test'), admitted, story)
  call.outputCapMost = lowered
  return { call, notes }
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
  expect(notes).toEqual([
    'implausible usage: the provider reported no input or no output tokens, although the answer has content; an estimate was charged instead',
  ])
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
    const { call } = open({ text: long })
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
    const { call } = open({ text })
    call.letGo(measured({ usageSoFar, outputBytes: 4 }))
    expect(call.envelope.body.length).toBe(call.bodyBytes)
  })
})

describe('the most output that is believed', () => {
  const capped = '"max_tokens":100'
  const cases: readonly [name: string, opened: Opened, most: number][] = [
    ['the cap and its tolerance', { members: capped }, 116],
    ['for each of three choices', { members: `${capped},"n":3` }, 348],
    ['the cap that the wallet pays for', { members: capped, lowered: 50 }, 66],
    ["the model's, where that is lower", { members: capped, model: { maxOutputTokens: 40 } }, 56],
    ["the model's default", { model: { defaultMaxTokens: 400, maxOutputTokens: 8000 } }, 420],
    [
      "the model's longest answer, where reasoning comes on top of the cap",
      { members: capped, model: { maxOutputTokens: 8000 }, rules: { capExcludesReasoning: true } },
      8400,
    ],
    ['32,768 and 5 % where nobody sets a cap', {}, 34_407],
  ]
  test.each(cases)('%s', (_, opened, most) => {
    const { call } = open(opened)
    const judged = (output: number) => call.finalUsage(usage(3, output), undefined, () => 4)
    expect(judged(most)).toEqual(usage(3, most))
    expect(judged(most + 1)).toMatchObject({
      inputTokens: 3,
      outputTokens: 1,
      inputReported: true,
      source: 'estimated',
    })
  })

  test('is as many tokens as bytes where no cap was sent and the answer is longer than assumed', () => {
    const { call } = open()
    expect(call.finalUsage(usage(3, 50_000), undefined, () => 50_000).source).toBe('reported')
    expect(call.finalUsage(usage(3, 50_001), undefined, () => 50_000).source).toBe('estimated')
  })
})

test('an implausible input falls back to the one that was reported at the start', () => {
  const { call, notes } = open()
  expect(call.finalUsage(usage(190_000, 7), usage(3, 1), () => 4)).toMatchObject({
    inputTokens: 3,
    outputTokens: 7,
    source: 'estimated',
  })
  expect(notes).toHaveLength(1)
})

test('a long body that was let go of keeps its bounds', () => {
  const { call } = open({ text: 'a word or two '.repeat(6_000), model: { contextTokens: undefined } })
  const most = call.bodyBytes + 4_096
  call.letGo(measured({ usageSoFar: usage(900, 1), outputBytes: 4 }))
  expect(call.finalUsage(usage(most, 1), undefined, () => 4).source).toBe('reported')
  expect(call.finalUsage(usage(most + 1, 1), undefined, () => 4).source).toBe('estimated')
})
