import { describe, expect, test } from 'bun:test'
import { tokenCounts } from '../../test/parts/token-counts.ts'
import type { Usage } from '../kernel/usage.ts'
import type { Candidate } from '../routing/plan.ts'
import type { LogFields } from '../telemetry/log.ts'
import { RequestRecord } from '../telemetry/request-record.ts'
import {
  createUsageWarnings,
  estimateUsage,
  findImplausible,
  implausibleNote,
  outputCapOf,
  type UsageBounds,
  usageSince,
  withTolerance,
} from './usage.ts'

const usage = (counts: Partial<Usage>): Usage => ({
  ...tokenCounts(0, 0),
  source: 'reported',
  ...counts,
})

/** A request of at most 1,000 input tokens with a cap of 50, and a search tool with a limit of 5. */
const bounds: UsageBounds = {
  inputTokens: 1000,
  outputTokens: 66,
  isCapSent: true,
  summaryTokens: 500,
  units: { webSearches: 5 },
}

describe('a reported count', () => {
  const cases: readonly [name: string, counts: Partial<Usage>, outputBytes: number, found: string | undefined][] = [
    ['is ordinary', { inputTokens: 10, outputTokens: 5 }, 20, undefined],
    [
      'has input up to the bound, over all buckets',
      { cacheReadTokens: 950, inputTokens: 50, outputTokens: 1 },
      4,
      undefined,
    ],
    ['has one input token more', { cacheReadTokens: 950, inputTokens: 51, outputTokens: 1 }, 4, 'input'],
    ['has output up to the bound', { inputTokens: 1, outputTokens: 66 }, 4, undefined],
    ['has one output token more', { inputTokens: 1, outputTokens: 67 }, 4, 'output'],
    ['has one output token more, and bytes for it', { inputTokens: 1, outputTokens: 67 }, 670, 'output'],
    ['has reasoning inside the bound', { inputTokens: 1, outputTokens: 66, reasoningTokens: 60 }, 4, undefined],
    ['has no output, and none was seen', { inputTokens: 10 }, 0, undefined],
    ['has no output, though some was seen', { inputTokens: 10 }, 1, 'zero'],
    ['has no input, though there is output', { outputTokens: 5 }, 20, 'zero'],
    ['has input from a cache alone', { cacheReadTokens: 10, outputTokens: 5 }, 20, undefined],
    ['has nothing, for nothing', {}, 0, undefined],
    [
      'has input read again after each of two searches',
      { inputTokens: 3000, outputTokens: 5, webSearches: 2 },
      4,
      undefined,
    ],
    ['has one token more than three readings', { inputTokens: 3001, outputTokens: 5, webSearches: 2 }, 4, 'input'],
    ['has output in three rounds', { inputTokens: 10, outputTokens: 198, webSearches: 2 }, 4, undefined],
    [
      'has more searches than the request allows',
      { inputTokens: 1, outputTokens: 5, webSearches: 6 },
      4,
      'web_searches',
    ],
    [
      'has a summary longer than the cap',
      { inputTokens: 1, outputTokens: 5, summaries: [usage({ inputTokens: 9, outputTokens: 500 })] },
      4,
      undefined,
    ],
    [
      'has a summary longer than any answer',
      { inputTokens: 1, outputTokens: 5, summaries: [usage({ outputTokens: 501 })] },
      4,
      'summary',
    ],
    [
      'has eleven summaries',
      { inputTokens: 1, outputTokens: 5, summaries: Array(11).fill(usage({ outputTokens: 1 })) },
      4,
      'summary',
    ],
    [
      'has a summary of more than was sent',
      { inputTokens: 1, outputTokens: 5, summaries: [usage({ inputTokens: 1001 })] },
      4,
      'summary',
    ],
  ]
  test.each(cases)('%s', (_, counts, outputBytes, found) => {
    expect(findImplausible(usage(counts), bounds, () => outputBytes)?.count).toBe(found as never)
  })

  test('is validated without measuring the output if that decides nothing', () => {
    const measure = (): number => {
      throw new Error('measured')
    }
    expect(findImplausible(usage({ inputTokens: 1, outputTokens: 1 }), bounds, measure)).toBeUndefined()
  })

  test('may exceed an assumed bound by as many tokens as bytes were relayed', () => {
    const assumed = { ...bounds, isCapSent: false }
    const long = usage({ inputTokens: 1, outputTokens: 5000 })
    expect(findImplausible(long, assumed, () => 5000)).toBeUndefined()
    expect(findImplausible(long, assumed, () => 4999)).toMatchObject({ count: 'output', max: 4999 })
  })

  test('does not allow more for searches that were not requested', () => {
    const none = { ...bounds, units: undefined }
    expect(findImplausible(usage({ inputTokens: 1, outputTokens: 5, webSearches: 900 }), none, () => 4)).toBeUndefined()
    const long = usage({ inputTokens: 1001, outputTokens: 5, webSearches: 900 })
    expect(findImplausible(long, none, () => 4)).toMatchObject({ count: 'input', max: 1000 })
  })

  test('is noted with its numbers', () => {
    const found = findImplausible(usage({ inputTokens: 1, outputTokens: 190_000 }), bounds, () => 2)
    expect(found && implausibleNote(found)).toBe(
      'implausible usage: the provider reported 190000 output tokens, and this request allows 66 at most; an estimate was charged instead',
    )
  })
})

test.each([
  [0, 16],
  [1, 17],
  [16, 32],
  [320, 336],
  [321, 338],
  [1000, 1050],
  [128_000, 134_400],
])('a cap of %i allows a report of %i', (cap, max) => {
  expect(withTolerance(cap)).toBe(max)
})

test.each([
  ['the caller', { outputCap: 7 }, { defaultMaxTokens: 5, maxOutputTokens: 9 }, 7],
  ['the model, where the caller asks for more', { outputCap: 70 }, { defaultMaxTokens: 5, maxOutputTokens: 9 }, 9],
  ['the default of the model', { outputCap: undefined }, { defaultMaxTokens: 5, maxOutputTokens: 9 }, 5],
  ['the most the model writes', { outputCap: undefined }, { defaultMaxTokens: undefined, maxOutputTokens: 9 }, 9],
  ['an assumption', { outputCap: undefined }, { defaultMaxTokens: undefined, maxOutputTokens: undefined }, 32_768],
])('the cap comes from %s', (_, envelope, model, cap) => {
  expect(outputCapOf(envelope, model)).toBe(cap)
})

describe('an estimate', () => {
  test('counts four bytes as a token, rounded up', () => {
    expect(estimateUsage(undefined, 9, bounds, () => 8)).toMatchObject({
      inputTokens: 8,
      outputTokens: 3,
      source: 'estimated',
    })
  })

  test('keeps the input that was reported at the start, by bucket', () => {
    const atStart = usage({ inputTokens: 3, cacheReadTokens: 2, cacheWriteLongTokens: 1, outputTokens: 1 })
    const estimate = { ...atStart, outputTokens: 2, inputReported: true as const, source: 'estimated' as const }
    expect(estimateUsage(atStart, 8, bounds, () => 100)).toEqual(estimate)
    expect(estimateUsage(undefined, 8, bounds, () => 100).inputReported).toBeUndefined()
  })

  test('never has less output than was reported', () => {
    expect(estimateUsage(usage({ inputTokens: 3, outputTokens: 40 }), 8, bounds, () => 100).outputTokens).toBe(40)
    expect(estimateUsage(usage({ outputTokens: 40 }), 8, bounds, () => 100)).toMatchObject({
      inputTokens: 100,
      outputTokens: 40,
    })
  })

  test('never exceeds the bound', () => {
    expect(estimateUsage(undefined, 1_000_000, bounds, () => 8).outputTokens).toBe(66)
    expect(estimateUsage(undefined, 1_000_000, { ...bounds, isCapSent: false }, () => 8).outputTokens).toBe(250_000)
  })

  test.each<[count: string, counts: Partial<Usage>]>([
    ['output', { outputTokens: 190_000, reasoningTokens: 189_000, audioOutputTokens: 7 }],
    ['input', { cacheReadTokens: 190_000 }],
    ['searches', { webSearches: 900 }],
    ['summaries', { summaries: [usage({ inputTokens: 9, outputTokens: 60 }), usage({ outputTokens: 9_999 })] }],
  ])('uses nothing of a report with implausible %s', (_, counts) => {
    const reported = usage({ inputTokens: 3, outputTokens: 5, webSearches: 2, ...counts })
    expect(estimateUsage(reported, 8, bounds, () => 100)).toEqual(estimateUsage(undefined, 8, bounds, () => 100))
  })

  test('keeps the searches of a report without input', () => {
    expect(estimateUsage(usage({ webSearches: 2 }), 8, bounds, () => 100)).toMatchObject({
      inputTokens: 100,
      outputTokens: 2,
      webSearches: 2,
    })
  })

  test('replaces a reported input of zero', () => {
    expect(estimateUsage(usage({}), 8, bounds, () => 100)).toMatchObject({ inputTokens: 100, outputTokens: 2 })
  })
})

describe('a count in mid-stream', () => {
  const counted = usage({ inputTokens: 3, outputTokens: 40 })

  test('stays the same object if nothing was relayed since', () => {
    expect(usageSince(counted, 0, bounds)).toBe(counted)
  })

  test('grows by an estimate of what was relayed since', () => {
    const more = { ...counted, outputTokens: 43, inputReported: true as const, source: 'estimated' as const }
    expect(usageSince(counted, 9, bounds)).toEqual(more)
  })

  test('stops growing at the bound', () => {
    expect(usageSince(counted, 1_000_000, bounds).outputTokens).toBe(66)
  })

  test('keeps an estimated input estimated', () => {
    const estimated = estimateUsage(undefined, 8, bounds, () => 100)
    expect(usageSince(estimated, 4, bounds)).toEqual({ ...estimated, outputTokens: 3 })
  })
})

describe('the operator', () => {
  function open() {
    const lines: (readonly [string, LogFields | undefined])[] = []
    let nowMs = 0
    const log = { warn: (message: string, fields?: LogFields) => void lines.push([message, fields]) }
    const clock = { now: () => 0, monotonicMs: () => nowMs }
    const warn = createUsageWarnings({ log, clock } as unknown as Parameters<typeof createUsageWarnings>[0])
    return {
      warn,
      lines,
      pass(ms: number) {
        nowMs += ms
      },
    }
  }
  const record: RequestRecord = {
    ...new RequestRecord('req_1', 0, '/v1/messages'),
    model: 'acme/model',
    notes: ['ended with "stop"', 'implausible usage: …'],
    implausible: { count: 'output' as const, reported: 1 },
  }
  const routeOf = (upstreamModel: string) =>
    ({ health: {}, provider: { id: 'acme' }, route: { upstreamModel } }) as unknown as Candidate

  test('is warned once an hour for each route', () => {
    const { warn, lines, pass } = open()
    const [first, second] = [routeOf('first'), routeOf('second')]
    for (const route of [first, first, second]) warn(record, route)
    pass(3_599_999)
    warn(record, first)
    pass(1)
    warn(record, first)
    expect(lines.map(([, fields]) => fields?.upstream_model)).toEqual(['first', 'second', 'first'])
    expect(lines[0]?.[1]).toMatchObject({ request_id: 'req_1', model: 'acme/model', note: 'implausible usage: …' })
  })

  test('is not warned about plausible usage', () => {
    const { warn, lines } = open()
    warn({ ...record, implausible: undefined }, routeOf('first'))
    expect(lines).toEqual([])
  })
})
