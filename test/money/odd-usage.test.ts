// Rows 1 to 3 of docs/reference/charges.md: what a provider counts is billed where it can be true, and estimated from what
// passed where it is missing or cannot, never as a credit and never as nothing. Both lanes, both surfaces, streamed or
// not.

import { afterAll, describe, expect, test } from 'bun:test'
import { addressed } from '../parts/surfaces.ts'
import { answerWith, type DialectName, say, wordsOf } from '../parts/upstream-words.ts'
import { allPaths, expectPaid, openTill, type Path, streamedPaths } from './till.ts'
import { usd } from './wallets.ts'

const till = await openTill()
afterAll(() => till[Symbol.asyncDispose]())

/** Twelve bytes, which count as three tokens. */
const texts = ['hello ', 'world!']
/** The prompt "hi": three tokens around a conversation, four around a turn, and one. 8 × 350 + 3 × 1,050. */
const estimate = 5_950n

/** A report of 10 in and 5 out with one count changed, in the dialect's words. */
function report(dialect: DialectName, counts: { readonly input?: unknown; readonly output?: unknown }): object {
  const { input = 10, output = 5 } = counts
  if (dialect === 'gemini') return { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: 15 }
  if (dialect !== 'chat') return { input_tokens: input, output_tokens: output }
  return { prompt_tokens: input, completion_tokens: output, total_tokens: 15 }
}

/** A count of zero is missing, and the other one is billed: 10 × 350 + 3 × 1,050, and 8 × 350 + 5 × 1,050. */
const outputEstimated = 6_650n
const inputEstimated = 8_050n

interface Case {
  readonly name: string
  readonly charge?: bigint
  /** Its output count cannot be read. Gemini leaves that out while there is none, so the rest of its report counts. */
  readonly isOutputUnread?: true
  usage(dialect: DialectName): unknown
}

const odd: readonly Case[] = [
  { name: 'none', usage: () => undefined },
  { name: 'null', usage: () => null },
  { name: 'nothing in it', usage: () => ({}) },
  { name: 'a word in its place', usage: () => 'a lot' },
  { name: 'a negative output', isOutputUnread: true, usage: (dialect) => report(dialect, { output: -5 }) },
  { name: 'a negative input', usage: (dialect) => report(dialect, { input: -1_000_000 }) },
  { name: 'a fraction', isOutputUnread: true, usage: (dialect) => report(dialect, { output: 2.5 }) },
  { name: 'numbers as text', usage: (dialect) => report(dialect, { input: '10', output: '5' }) },
  { name: 'more than 2³¹', isOutputUnread: true, usage: (dialect) => report(dialect, { output: 2 ** 31 + 1 }) },
  { name: 'more input than was sent', usage: (dialect) => report(dialect, { input: 20_000 }) },
  // No cap was sent on the chat surface, and 32,768 tokens is what is assumed then.
  { name: 'more output than was asked for', usage: (dialect) => report(dialect, { output: 40_000 }) },
  { name: 'zeros, though there is content', usage: (dialect) => report(dialect, { input: 0, output: 0 }) },
  {
    name: 'no output, though there is content',
    charge: outputEstimated,
    usage: (dialect) => report(dialect, { output: 0 }),
  },
  {
    name: 'no input, though there is content',
    charge: inputEstimated,
    usage: (dialect) => report(dialect, { input: 0 }),
  },
]

describe.each([...allPaths])('$name', (path) => {
  test.each([...odd])('usage: $name', async ({ usage, isOutputUnread, ...row }) => {
    const charge = row.charge ?? (isOutputUnread && path.provider === 'gemini' ? outputEstimated : estimate)
    till.upstream.handle((call, reply) => say(call, reply, { texts, usageAtStart: null, usage: usage(path.provider) }))
    const answer = await till.ask(path)
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('world!')
    expect(answer.cost).toBe(usd(charge))
    expect(answer.headers.get('x-tollgate-usage')).toBe(path.stream ? null : 'estimated')
    expect(answer.headers.get('x-tollgate-cost')).toBe(path.stream ? null : usd(charge))
    await expectPaid(till, answer, charge, 'estimated')
  })

  test('implausible usage is recorded as such', async () => {
    till.upstream.handle((call, reply) => say(call, reply, { texts, usage: report(path.provider, { output: 0 }) }))
    const { requestId } = await till.ask(path)
    expect((await till.line(requestId)).notes).toContain('implausible usage')
  })

  const capped = { max_tokens: 100 }
  /** One token for each byte of the body, and 4,096 that a provider may add. */
  const mostInput = (of: Path) => Buffer.byteLength(addressed(of.surface, till.bodyFor(of, capped)).body) + 4_096

  test('the largest usage that can be true is billed as it is', async () => {
    const input = mostInput(path)
    till.upstream.handle(answerWith({ input, output: 116 }, texts))
    const answer = await till.ask(path, capped)
    // Beyond a thousand tokens of input: 700 each, and 116 × 1,575
    await expectPaid(till, answer, BigInt(input) * 700n + 182_700n)
    expect((await till.line(answer.requestId)).notes).toBe('[]')
  })

  test.each([
    ['input', { input: 1, output: 0 }],
    ['output', { input: 0, output: 1 }],
  ])('one token of %s more is not', async (_, more) => {
    const input = mostInput(path) + more.input
    till.upstream.handle(answerWith({ input, output: 116 + more.output }, texts))
    const { requestId } = await till.ask(path, capped)
    expect(till.charges(requestId)).toMatchObject([{ isEstimated: true }])
    expect((await till.line(requestId)).notes).toContain('implausible usage')
  })

  test.each(['length', 'end'] as const)(
    'an answer that stops with %s is complete and paid as reported',
    async (stop) => {
      till.upstream.handle(answerWith({ input: 7, output: 1 }, texts, { stop }))
      await expectPaid(till, await till.ask(path), 3_500n)
    },
  )

  test('an answer that is empty, and ends properly, costs what it was reported to', async () => {
    till.upstream.handle(answerWith({ input: 7, output: 0 }, []))
    const answer = await till.ask(path)
    expect(answer.status).toBe(200)
    // 7 × 350
    await expectPaid(till, answer, 2_450n)
  })
})

describe.each(streamedPaths.filter(({ provider }) => provider === 'messages'))('$name', (path) => {
  // 10 × 350 + 3 × 1,050
  test.each(odd.filter(({ name }) => !name.includes('input') && !name.includes('zeros') && !name.includes('text')))(
    'usage: good at the start and then $name',
    async ({ usage }) => {
      const usageAtStart = { input_tokens: 10, output_tokens: 1 }
      till.upstream.handle((call, reply) => say(call, reply, { texts, usageAtStart, usage: usage('messages') }))
      const answer = await till.ask(path)
      expect(answer.cost).toBe(usd(6_650n))
      await expectPaid(till, answer, 6_650n, 'estimated')
    },
  )

  test('usage: zeros at the start and the truth at the end', async () => {
    const usageAtStart = { input_tokens: 0, output_tokens: 0 }
    till.upstream.handle(answerWith({ input: 7, output: 1 }, texts, { usageAtStart }))
    await expectPaid(till, await till.ask(path), 3_500n)
  })
})

describe.each(streamedPaths.filter(({ provider }) => provider === 'chat'))('$name', (path) => {
  const { text, ending } = wordsOf('chat')
  const first = (usage: object): string =>
    `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { role: 'assistant' } }], usage })}\n\n`
  // Counted against the whole answer they would make output, or all of it, free.
  test.each([
    ['zeros', { input: 0 }, estimate],
    ['the prompt', { input: 10 }, 10n * 350n + 3n * 1_050n],
  ] as const)('usage: %s in the first chunk, and never again', async (_, { input }, charge) => {
    till.upstream.handle(async (_call, reply) => {
      const counted = first(report('chat', { input, output: 0 }))
      await reply.startStream()
      await reply.chunk(counted + texts.map(text).join('') + ending({ usage: undefined }))
      await reply.finish()
    })
    const answer = await till.ask(path)
    expect(answer.cost).toBe(usd(charge))
    await expectPaid(till, answer, charge, 'estimated')
  })

  test('usage: zeros in every chunk are written down once', async () => {
    till.upstream.handle(async (_, reply) => {
      const counted = texts.map((each) =>
        text(each).replace('"model"', `"usage":${JSON.stringify(report('chat', { input: 0, output: 0 }))},"model"`),
      )
      await reply.startStream()
      await reply.chunk(counted.join('') + ending({ usage: undefined }))
      await reply.finish()
    })
    const answer = await till.ask(path)
    await expectPaid(till, answer, estimate, 'estimated')
    expect(JSON.parse((await till.line(answer.requestId)).notes)).toHaveLength(1)
  })
})

/** A stream that counts once on the way, once at its end, and after that as often as there are more counts. */
function contradicting(provider: DialectName, [first, atEnd, ...after]: readonly [Count, Count, ...Count[]]): string {
  const counts = ([input, output]: Count) => JSON.stringify(report(provider, { input, output }))
  const { opening, text, ending } = wordsOf(provider)
  if (provider === 'messages') {
    const usageAtStart = JSON.parse(counts(first))
    const more = [atEnd, ...after].map((count) => ending({ usage: JSON.parse(counts(count)) }).split('\n\n')[1])
    const end = ending({ usage: undefined }).split('\n\n')
    return (
      opening({ usage: undefined, usageAtStart }) +
      texts.map(text).join('') +
      [end[0], ...more, end[2], ''].join('\n\n')
    )
  }
  const [place, name] = provider === 'gemini' ? ['"modelVersion"', 'usageMetadata'] : ['"model"', 'usage']
  const counting = (record: string, count: Count) => record.replace(place, `"${name}":${counts(count)},${place}`)
  const end = ending({ usage: undefined }).replace('data: [DONE]\n\n', '')
  const alone = provider === 'gemini' ? '{"modelVersion":"up"}' : '{"id":"c","model":"up","choices":[]}'
  const done = provider === 'gemini' ? '' : 'data: [DONE]\n\n'
  return [
    opening({ usage: undefined }),
    ...texts.map((each) => (each === texts[0] ? counting(text(each), first) : text(each))),
    counting(end, atEnd),
    ...after.map((count) => counting(`data: ${alone}\n\n`, count)),
    done,
  ].join('')
}

type Count = readonly [input: number, output: number]

const countingPaths = streamedPaths.filter(({ provider }) => provider !== 'responses')
describe.each([
  ...countingPaths.map((path) => ({ ...path, members: {} })),
  ...countingPaths
    .filter(({ surface }) => surface.name === 'chat')
    .map((path) => ({
      ...path,
      name: `${path.name}, without include_usage`,
      members: { stream_options: { include_usage: false } },
    })),
])('$name', ({ members, ...path }) => {
  // A translated stream has only the usage that its caller asks for.
  const isTold = path.surface.name === path.provider || !('stream_options' in members)
  test.each([
    // What was reported first can be true: 10 × 350 + 5 × 1,050.
    [
      'the last is implausible',
      [
        [10, 5],
        [10, 500],
        [10, 7],
        [999, 999],
      ],
      8_750n,
      'estimated',
    ],
    [
      'all are implausible',
      [
        [999, 999],
        [10, 500],
        [999, 999],
      ],
      estimate,
      'estimated',
    ],
    // 10 × 350 + 7 × 1,050
    [
      'the last is plausible',
      [
        [10, 5],
        [10, 500],
        [10, 7],
      ],
      10_850n,
      'reported',
    ],
  ] as const)(
    'usage contradicts itself, and %s: the last cost stated is the charge',
    async (_, counts, charge, how) => {
      till.upstream.handle(async (_call, reply) => {
        await reply.startStream()
        await reply.chunk(contradicting(path.provider, counts))
        await reply.finish()
      })
      const answer = await till.ask(path, { max_tokens: 100, ...members })
      expect(answer.text).toContain('world!')
      expect(answer.cost).toBe(isTold ? usd(charge) : undefined)
      await expectPaid(till, answer, charge, how)
      expect(JSON.parse((await till.line(answer.requestId)).notes)).toHaveLength(how === 'estimated' ? 1 : 0)
    },
  )
})
