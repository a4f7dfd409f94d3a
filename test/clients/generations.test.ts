import { afterAll, describe, expect, test } from 'bun:test'
import { startGateway } from '../parts/gateway.ts'
import {
  chatClientNames,
  isChatClient,
  isResponseClient,
  messageClientNames,
  responseClientNames,
} from '../parts/official-clients.ts'
import { type Ask, type ClientReply, createTalk, type Mode, type Tool } from './talk.ts'

// Clients × behaviours: every official client, whole and through its own accumulator, on the sandbox's models. Tokens
// are counted by hand with the rule of docs/sandbox.md (a word or a run of up to four signs is one, a turn costs four
// more); costs are those counts times $1 per million in and $2 out, where a row says nothing else.

const gateway = await startGateway()
afterAll(() => gateway.stop())

/** 18 tokens of schema, 3 of name, 4 of description and 4 for the tool: 29. */
const weather: Tool = {
  name: 'get_weather',
  description: 'Weather of a city',
  schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
/** 29 as well. */
const news: Tool = { ...weather, name: 'get_news', description: 'News of a city' }

interface Row {
  readonly does: string
  readonly ask: Ask
  readonly text?: string
  readonly thinking?: string
  /** Names of the tools that are called, each with the argument the sandbox makes up. */
  readonly calls?: readonly string[]
  readonly stop: 'end' | 'length' | 'calls'
  readonly input: number
  readonly output: number
  readonly reasoning?: number
  readonly cost: string
}

const rows: readonly Row[] = [
  {
    does: 'an echo',
    ask: { model: 'sandbox/echo', turns: ['hello from the other side of the gate'] },
    text: 'hello from the other side of the gate',
    stop: 'end',
    input: 12,
    output: 8,
    cost: '0.000028',
  },
  {
    does: 'an echo of more than ASCII',
    ask: { model: 'sandbox/echo', turns: ['Grüße 👍🏽'] },
    text: 'Grüße 👍🏽',
    stop: 'end',
    input: 6,
    output: 2,
    cost: '0.00001',
  },
  {
    does: 'an echo cut by the cap',
    ask: { model: 'sandbox/echo', turns: ['hello from the other side of the gate'], maxTokens: 3 },
    text: 'hello from the',
    stop: 'length',
    input: 12,
    output: 3,
    cost: '0.000018',
  },
  {
    does: 'a tool call',
    ask: { model: 'sandbox/tools', turns: ['how is it there'], tools: [weather] },
    calls: ['get_weather'],
    stop: 'calls',
    // 29 + 8; get _ weather {" city ":" sandbox "}
    input: 37,
    output: 8,
    cost: '0.000053',
  },
  {
    does: 'two tool calls in parallel',
    ask: { model: 'sandbox/tools', turns: ['all of them in parallel'], tools: [weather, news] },
    calls: ['get_weather', 'get_news'],
    stop: 'calls',
    input: 67,
    output: 16,
    cost: '0.000099',
  },
  {
    does: 'a thought',
    ask: { model: 'sandbox/think', turns: ['why is it so'] },
    thinking: 'The user wrote: why is it so\nNothing has to be looked up, so I can answer at once.',
    text: 'After some thought: why is it so',
    stop: 'end',
    input: 8,
    // 22 thought, 8 said, at $8 per million
    output: 30,
    reasoning: 22,
    cost: '0.000248',
  },
]

const stops = {
  chat: { end: 'stop', length: 'length', calls: 'tool_calls' },
  messages: { end: 'end_turn', length: 'max_tokens', calls: 'tool_use' },
  responses: { end: 'completed', length: 'max_output_tokens', calls: 'calls' },
} as const

/** The facts that every answer has. */
function expectReply(
  reply: ClientReply,
  mode: Mode,
  { model, upstream, cost }: { model: string; upstream: string; cost: string },
) {
  expect(reply.models).toEqual([model])
  expect(reply.cost).toBe(Number(cost))
  expect(reply.requestId).toMatch(/^req_[0-9A-HJKMNP-TV-Z]{26}$/)
  expect(Object.fromEntries(reply.headers)).toMatchObject({
    'x-request-id': reply.requestId,
    'request-id': reply.requestId,
    'x-tollgate-provider': 'sandbox',
    'x-tollgate-upstream-model': upstream,
  })
  // A stream's headers are gone before its cost is known.
  expect(reply.headers.get('x-tollgate-cost')).toBe(mode === 'whole' ? cost : null)
}

for (const name of [...chatClientNames, ...messageClientNames, ...responseClientNames]) {
  for (const mode of ['whole', 'streamed'] as const) {
    describe(`${name}, ${mode}`, () => {
      const stopOf = stops[isResponseClient(name) ? 'responses' : isChatClient(name) ? 'chat' : 'messages']
      const say = (ask: Ask) => createTalk(name, gateway)(ask, mode)

      test.each(rows)('$does', async (row) => {
        const reply = await say(row.ask)
        const { model } = row.ask
        expectReply(reply, mode, { model, upstream: model.replace('sandbox/', ''), cost: row.cost })
        expect(reply.headers.get('x-tollgate-attempts')).toBe('1')
        expect(reply).toMatchObject({ text: row.text ?? '', thinking: row.thinking ?? '', stop: stopOf[row.stop] })
        expect(reply.calls.map((call) => [call.name, call.input])).toEqual(
          (row.calls ?? []).map((called) => [called, { city: 'sandbox' }]),
        )
        expect(reply.tokens).toEqual({ input: row.input, read: 0, written: 0, output: row.output })
        expect(reply.reasoningTokens).toBe(row.reasoning)
      })

      test('a tool loop runs to its end', async () => {
        const ask = { model: 'sandbox/tools', turns: ['how is it there'], tools: [weather] }
        const first = await say(ask)
        const last = await say({ ...ask, turns: [...ask.turns, first, { results: ['it rains'] }] })
        // 29 for the tool, 8 for the question, 4 + 8 for the call, 4 + 2 for its result
        expectReply(last, mode, { model: 'sandbox/tools', upstream: 'tools', cost: '0.000067' })
        expect(last).toMatchObject({ text: 'The tool said: it rains', calls: [], stop: stopOf.end })
        expect(last.tokens).toEqual({ input: 55, read: 0, written: 0, output: 6 })
      })

      test('a tool loop with parallel calls runs to its end', async () => {
        const ask = { model: 'sandbox/tools', turns: ['all of them in parallel'], tools: [weather, news] }
        const first = await say(ask)
        expect(new Set(first.calls.map((call) => call.id)).size).toBe(2)
        const last = await say({ ...ask, turns: [...ask.turns, first, { results: ['it rains', 'all quiet'] }] })
        // 58 for the tools, 9 for the question, 4 + 16 for the calls, twice 4 + 2 for the results
        expectReply(last, mode, { model: 'sandbox/tools', upstream: 'tools', cost: '0.000117' })
        expect(last).toMatchObject({ text: 'The tool said: it rains; all quiet', stop: stopOf.end })
        expect(last.tokens).toEqual({ input: 99, read: 0, written: 0, output: 9 })
      })

      test('a prompt is written to the cache, then read from it', async () => {
        // One word, of up to 12 letters, that no other test uses: 7 + 4 tokens of prefix, 1 + 4 of question, 1 of answer.
        const system = `You are the parrot of ${name.replaceAll(' ', '').replace('responses', 'r')}${mode.charAt(0)} alone`
        const ask = { model: 'sandbox/cache', system, turns: ['again'] }
        const first = await say(ask)
        expectReply(first, mode, { model: 'sandbox/cache', upstream: 'cache', cost: '0.00002075' })
        expect(first.tokens).toEqual({ input: 5, read: 0, written: 11, output: 1 })
        const second = await say(ask)
        expectReply(second, mode, { model: 'sandbox/cache', upstream: 'cache', cost: '0.0000081' })
        expect(second.tokens).toEqual({ input: 5, read: 11, written: 0, output: 1 })
      })

      test('a route that fails every other time is not seen but in the headers', async () => {
        const ask = { model: 'sandbox/flaky', turns: ['still here'] }
        const reply = [await say(ask), await say(ask)]
        const seen = reply.map(({ text, models, headers }) => [
          text,
          ...models,
          headers.get('x-tollgate-attempts'),
          headers.get('x-tollgate-upstream-model'),
        ])
        expect(seen.sort()).toEqual([
          ['still here', 'sandbox/flaky', '1', 'flaky-first'],
          ['still here', 'sandbox/flaky', '2', 'flaky-second'],
        ])
      })
    })
  }
}
