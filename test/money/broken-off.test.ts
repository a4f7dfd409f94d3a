// Rows 6 to 9 of docs/reference/charges.md: what a provider delivered is paid for, also when it breaks off; what failed
// before any content costs nothing, whatever the provider bills; and of several attempts the one that answered is paid.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { stopAll } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { startUpstream, type UpstreamCall, type UpstreamReply } from '../parts/upstream.ts'
import {
  answerWith,
  type DialectName,
  type DialectWords,
  dialectOf,
  usageIn,
  wantsStream,
  wordsOf,
} from '../parts/upstream-words.ts'
import {
  allPaths,
  expectPaid,
  expectUnpaid,
  helloCharge,
  lastError,
  openTill,
  type Path,
  streamedPaths,
  type Till,
  terminal,
} from './till.ts'
import { usd } from './wallets.ts'

const spare = startUpstream(() => {})
const clock = createJumpClock()
const till = await openTill({ models: 130 })
/** Like `till`, with a second provider behind the first. */
const spared = await openTill({ models: 110, spare, clock })
// The whole process shares a budget of retries, which time brings back.
beforeEach(() => clock.jump(60))
afterAll(() => stopAll(till, spared, spare))

const usageAtStart = { input_tokens: 3, output_tokens: 1 }

const errorRecords: Record<DialectName, string> = {
  gemini: 'data: {"error":{"code":503,"message":"fell over","status":"UNAVAILABLE"}}\n\n',
  chat: 'data: {"error":{"message":"fell over","type":"server_error","code":null}}\n\n',
  messages: 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
  responses:
    'event: response.failed\ndata: {"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"fell over"}}}\n\n',
}

describe.each([...streamedPaths])('row 6, after content: $name', (path) => {
  const ends: Record<string, (reply: UpstreamReply) => void | Promise<void>> = {
    'closes the connection': (reply) => reply.cut(),
    'resets the connection': (reply) => reply.reset(),
    'ends its body without a last event': (reply) => reply.finish(),
    'reports an error': (reply) => reply.chunk(errorRecords[path.provider]),
  }
  test.each(Object.keys(ends))('the provider %s', async (how) => {
    const arrived = Promise.withResolvers<void>()
    till.upstream.handle(async (call, reply) => {
      const words = wordsOf(dialectOf(call))
      await reply.startStream()
      await reply.chunk(words.opening({ usage: usageAtStart }) + words.text('hello'))
      await arrived.promise
      await ends[how]?.(reply)
    })
    const response = await ask(till.gateway, path.surface, till.bodyFor(path, till.fresh(path)))
    // The head is here, so the provider is committed.
    arrived.resolve()
    const text = await response.text()
    expect(lastError(text)).toMatchObject({
      code: 'STREAM_INTERRUPTED',
      metadata: { cost: usd(helloCharge[path.provider]) },
    })
    expect(text).not.toMatch(terminal)
    const requestId = response.headers.get('request-id') ?? ''
    await expectPaid(till, { requestId }, helloCharge[path.provider], 'estimated')
    const line = await till.line(requestId)
    expect(line).toMatchObject({ status: 200n, code: 'STREAM_INTERRUPTED' })
    const isCut = how.endsWith('the connection')
    const outcome = isCut ? 'interrupted: broken' : expect.stringMatching(/^interrupted: \w/)
    expect(JSON.parse(line.attempts)).toMatchObject([{ outcome }])
  })
})

const fromMessages = streamedPaths.filter(({ provider }) => provider === 'messages')

test.each([...fromMessages])('row 6, counted but not ended: $name pays what was counted', async (path) => {
  till.upstream.handle(async (call, reply) => {
    const words = wordsOf(dialectOf(call))
    const [counted = ''] = words.ending({ usage: { output_tokens: 9 } }).split('event: message_stop')
    await reply.startStream()
    await reply.chunk(words.opening({ usage: usageAtStart }) + words.text('hello') + counted)
    await reply.finish()
  })
  const answer = await till.ask(path, till.fresh(path))
  expect(answer.text).toContain('STREAM_INTERRUPTED')
  // Three in, and nine out: more than the two of the text that came.
  await expectPaid(till, answer, 3n * 350n + 9n * 1_050n, 'reported')
})

const fromChat = streamedPaths.filter(({ provider }) => provider === 'chat')

test.each([...fromChat])('a stream that lacks only [DONE] is complete: $name', async (path) => {
  till.upstream.handle(async (call, reply) => {
    const words = wordsOf(dialectOf(call))
    const usage = usageIn('chat', { input: 3, output: 9 })
    await reply.startStream()
    await reply.chunk(words.opening({ usage }) + words.text('hello'))
    await reply.chunk(words.ending({ usage }).replace('data: [DONE]\n\n', ''))
    await reply.finish()
  })
  const answer = await till.ask(path, till.fresh(path))
  expect(answer.text).toMatch(terminal)
  await expectPaid(till, answer, 3n * 350n + 9n * 1_050n, 'reported')
})

interface Refusal {
  readonly name: string
  /** 'outage': it may pass, which is a 404 on the two endpoints of the specification and a 503 on the others. */
  readonly status: number | 'outage'
  act(call: UpstreamCall, reply: UpstreamReply): void | Promise<void>
}

const refusals: readonly Refusal[] = [
  { name: 'fails', status: 'outage', act: (_, reply) => reply.json(500, {}) },
  { name: 'throttles', status: 429, act: (_, reply) => reply.json(429, {}, { 'retry-after': '1' }) },
  { name: 'refuses the request', status: 400, act: (_, reply) => reply.json(400, { error: { message: 'no' } }) },
  { name: 'takes the request for too large', status: 413, act: (_, reply) => reply.json(413, {}) },
  { name: 'refuses our credential', status: 404, act: (_, reply) => reply.json(401, {}) },
  { name: 'closes the connection', status: 'outage', act: (_, reply) => reply.cut() },
  {
    name: 'answers with something else',
    status: 'outage',
    act: (_, reply) => reply.send(200, { 'content-type': 'text/html' }, 'hi'),
  },
  {
    name: 'reports an error under a 200',
    status: 'outage',
    async act(call, reply) {
      if (!wantsStream(call)) return await reply.json(200, { error: { message: 'fell over' } })
      await reply.startStream()
      const dialect = dialectOf(call)
      await reply.chunk(wordsOf(dialect).opening({ usage: usageAtStart }) + errorRecords[dialect])
    },
  },
  {
    name: 'breaks off before content',
    status: 'outage',
    async act(call, reply) {
      if (!wantsStream(call)) return reply.reset()
      await reply.startStream()
      await reply.chunk(wordsOf(dialectOf(call)).opening({ usage: usageAtStart }))
      reply.cut()
    },
  },
]

function outageStatus({ surface }: Path): number {
  return surface.name === 'chat' || surface.name === 'messages' ? 404 : 503
}

describe('row 7, before content, on every path', () => {
  test.each([...refusals])('a provider that $name costs nothing', async ({ status, act }) => {
    till.upstream.handle(act)
    // Side by side: a throttled call is tried again after the second that the provider asks for.
    const answers = await Promise.all(allPaths.map((path) => till.ask(path, till.fresh(path))))
    for (const [at, path] of allPaths.entries()) {
      const answer = answers[at]
      if (!answer) throw new Error(path.name)
      const expected = status === 'outage' ? outageStatus(path) : status
      expect([path.name, answer.status]).toEqual([path.name, expected])
      expect(answer.headers.get('x-tollgate-cost')).toBeNull()
      expect(await expectUnpaid(till, answer.requestId)).toMatchObject({ status: BigInt(expected) })
    }
  })
})

describe('row 7, in no time', () => {
  let hasty: Till
  beforeAll(async () => {
    // Due at the next look at the clocks.
    hasty = await openTill({ models: 12, route: 'timeouts: { first_event_ms: 1, total_ms: 1 }' })
  })
  afterAll(() => hasty[Symbol.asyncDispose]())

  test.each([...allPaths])('$name: a provider that says nothing costs nothing', async (path) => {
    const answer = await hasty.ask(path, hasty.fresh(path))
    expect(answer.status).toBe(outageStatus(path))
    expect(answer.text).toContain('timed out')
    await expectUnpaid(hasty, answer.requestId)
  })
})

/** Usage as a provider would bill it, and nothing to show for it. */
const billed = { input: 7, output: 0 }

const chatChunk = (finish: string | null): string =>
  `data: ${JSON.stringify({ id: 'c', model: 'up', choices: [{ index: 0, delta: {}, finish_reason: finish }] })}\n\n`
const chatCounts = `data: ${JSON.stringify({ id: 'c', model: 'up', choices: [], usage: usageIn('chat', billed) })}\n\n`
const messagesEnd = (reason: string | null): string => {
  const delta = { type: 'message_delta', delta: { stop_reason: reason }, usage: usageIn('messages', billed) }
  return `event: message_delta\ndata: ${JSON.stringify(delta)}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n`
}

const emptyEnds: Record<
  string,
  Partial<Record<DialectName, { stream(words: DialectWords): string; whole: object }>>
> = {
  'without a reason': {
    gemini: {
      stream: (words) => words.opening({ usage: undefined }),
      whole: { candidates: [{ index: 0 }], usageMetadata: usageIn('gemini', billed) },
    },
    chat: {
      stream: (words) => `${words.opening({ usage: undefined })}${chatCounts}data: [DONE]\n\n`,
      whole: { id: 'c', model: 'up', choices: [], usage: usageIn('chat', billed) },
    },
    messages: {
      stream: (words) => words.opening({ usage: usageAtStart }) + messagesEnd(null),
      whole: { id: 'm', type: 'message', content: [], stop_reason: null, usage: usageIn('messages', billed) },
    },
  },
  'as failed': {
    responses: {
      stream: () => errorRecords.responses,
      whole: { id: 'resp_1', model: 'up', status: 'failed', output: [], usage: usageIn('responses', billed) },
    },
  },
  'with an error': {
    gemini: {
      stream: (words) => words.ending({ usage: usageIn('gemini', billed) }).replace('STOP', 'MALFORMED_FUNCTION_CALL'),
      whole: {
        candidates: [{ index: 0, finishReason: 'MALFORMED_FUNCTION_CALL' }],
        usageMetadata: usageIn('gemini', billed),
      },
    },
    chat: {
      stream: (words) => `${words.opening({ usage: undefined })}${chatChunk('error')}${chatCounts}data: [DONE]\n\n`,
      whole: {
        id: 'c',
        model: 'up',
        choices: [{ index: 0, message: { role: 'assistant', content: null }, finish_reason: 'error' }],
        usage: usageIn('chat', billed),
      },
    },
  },
}

/** Not every dialect has a word for each end. */
function waysFor(provider: DialectName): string[] {
  return Object.keys(emptyEnds).filter((how) => emptyEnds[how]?.[provider])
}

function sayNothing(how: string) {
  return async (call: UpstreamCall, reply: UpstreamReply): Promise<void> => {
    const dialect = dialectOf(call)
    const empty = emptyEnds[how]?.[dialect]
    if (!empty) throw new Error(how)
    if (!wantsStream(call)) return await reply.json(200, empty.whole)
    await reply.startStream()
    await reply.chunk(empty.stream(wordsOf(dialect)))
    await reply.finish()
  }
}

describe.each([...allPaths])('row 8, an empty answer that ends: $name', (path) => {
  test.each(waysFor(path.provider))('%s: costs nothing, and is a failed attempt', async (how) => {
    till.upstream.handle(sayNothing(how))
    const answer = await till.ask(path, till.fresh(path))
    // Gemini's malformed call depends on the prompt: another try would fail as well.
    const isLasting = how === 'with an error' && path.provider === 'gemini'
    expect(`${answer.status} ${answer.text}`).toStartWith(`${isLasting ? 404 : outageStatus(path)} `)
    await expectUnpaid(till, answer.requestId)
  })

  test.each(waysFor(path.provider))('%s: another provider is called and paid', async (how) => {
    spared.upstream.handle(sayNothing(how))
    spare.handle(answerWith({ input: 7, output: 1 }))
    const answer = await spared.ask(path, spared.fresh(path))
    expect(answer.status).toBe(200)
    await expectPaid(spared, answer, 3_500n)
  })
})

describe.each([...allPaths])('row 9, failed attempts before success: $name', (path) => {
  test.each(refusals.filter(({ status }) => status === 'outage' || status === 404 || status === 429))(
    'one that $name costs nothing beside the one that answers',
    async ({ act }) => {
      spared.upstream.handle(act)
      spare.handle(answerWith({ input: 7, output: 1 }))
      const before = await spared.wallets.read()
      const answer = await spared.ask(path, spared.fresh(path))
      expect(answer.status).toBe(200)
      // A connection that broke at once was perhaps an old one, and is tried afresh.
      expect(Number(answer.headers.get('x-tollgate-attempts'))).toBeGreaterThan(1)
      expect(answer.headers.get('x-tollgate-provider')).toMatch(/-1$/)
      expect(answer.cost).toBe('0.0000035')
      await expectPaid(spared, answer, 3_500n)
      expect(before.posted - (await spared.wallets.read()).posted).toBe(3_500n)
    },
  )
})
