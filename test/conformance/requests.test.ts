// Every request fixture on every pair of surface and provider, streamed and not, through the real gateway: everything
// arrives, or the caller gets a warning or an error. docs/compatibility.md has the result of each.

import { afterAll, describe, expect, test } from 'bun:test'
import { answerHello } from '../parts/upstream-words.ts'
import { type DialectName, openStage, type Pair, pairs } from './cells.ts'
import { pagePath, requestsTable, tableIn } from './compatibility.ts'
import { bodyOf, type Cell, requestCell } from './request-cells.ts'
import { geminiBodies } from './requests/gemini-bodies.ts'
import { geminiShapes } from './requests/gemini-shapes.ts'
import { requestFixtures } from './requests/index.ts'
import type { RequestFixture } from './requests/request-fixture.ts'
import { responsesBodies } from './requests/responses-bodies.ts'
import { responsesShapes } from './requests/responses-shapes.ts'

const stage = await openStage(answerHello)
afterAll(() => stage.stop())

const known = new Map<string, Promise<Cell>>()

/** Several tests ask for the same cell, which is one request. */
function cellOf(pair: Pair, fixture: RequestFixture, stream: boolean): Promise<Cell> {
  const name = [pair.surface, pair.model, fixture.feature, stream].join()
  const cell = known.get(name) ?? requestCell(stage, pair, fixture, { stream })
  known.set(name, cell)
  return cell
}

test.each([
  ['gemini', geminiShapes],
  ['responses', responsesShapes],
  ['the surface of Responses', responsesBodies],
  ['the surface of Gemini', geminiBodies],
])('what is looked for at %s has a row', (_, shapes) => {
  const features = [...requestFixtures.values()].flat().map(({ feature }) => feature)
  expect(Object.keys(shapes).filter((feature) => !features.includes(feature))).toEqual([])
})

describe.each(pairs)('$surface → $upstream ($upstreamModel)', (pair) => {
  for (const fixture of [...requestFixtures.values()].flat()) {
    test(fixture.feature, async () => {
      const cell = await cellOf(pair, fixture, true)
      expect<Cell['mark'] | string>(cell.mark === 'lost' ? `lost: ${cell.notes}` : cell.mark).toBeOneOf([
        'P',
        'E',
        'W',
        'R',
        '–',
      ])
      expect(await cellOf(pair, fixture, false)).toEqual(cell)
    })
  }

  test('x-tollgate-strict refuses whatever else would be a warning', async () => {
    for (const fixture of [...requestFixtures.values()].flat()) {
      const body = bodyOf(pair, fixture)
      if (!body) continue
      const { mark, notes } = await cellOf(pair, fixture, false)
      const warned = mark !== 'R' && notes.length > 0
      const before = stage.upstream.calls.length
      const response = await stage.ask(pair, body, { 'x-tollgate-strict': 'true' })
      const { error } = (await response.json()) as { error?: { code: string; message: string } }
      const sent = stage.upstream.calls.length - before
      const refused = warned || mark === 'R'
      expect([fixture.feature, response.status, sent]).toEqual([fixture.feature, refused ? 400 : 200, refused ? 0 : 1])
      if (warned) for (const code of notes) expect(error?.message).toContain(code)
    }
  })
})

test('docs/compatibility.md has these cells', async () => {
  // Look at a changed cell before writing the page again with `npm run compatibility`.
  const table = await requestsTable((pair, fixture) => cellOf(pair, fixture, true))
  const known = tableIn(await Bun.file(pagePath).text(), 'requests')
  expect(table.split('\n').filter((line) => !known.includes(`${line}\n`))).toEqual([])
  expect(known).toBe(table)
})

/** One on a tool, two on system text, three in the conversation: one of them inside a tool result. */
const mark = { cache_control: { type: 'ephemeral' } }
const markedRequest = {
  chat: {
    tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } }, ...mark }],
    messages: [
      { role: 'system', content: ['A', 'B'].map((text) => ({ type: 'text', text, ...mark })) },
      { role: 'user', content: [{ type: 'text', text: 'hi', ...mark }] },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: 'rain', ...mark }] },
      { role: 'user', content: 'and?', ...mark },
    ],
  },
  messages: {
    max_tokens: 1000,
    tools: [{ name: 'look', input_schema: { type: 'object' }, ...mark }],
    system: ['A', 'B'].map((text) => ({ type: 'text', text, ...mark })),
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'hi', ...mark }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'c1', content: [{ type: 'text', text: 'rain', ...mark }] },
          { type: 'text', text: 'and?', ...mark },
        ],
      },
    ],
  },
}
const breakpoint = { prompt_cache_breakpoint: { mode: 'explicit' } }
const marked = { ...markedRequest, responses: markedInput() }
/** Gemini's API has no marks. */
const markedPairs = pairs.filter((pair): pair is Pair & { surface: keyof typeof marked } => pair.surface !== 'gemini')

/** Tools take none there. */
function markedInput() {
  const part = (text: string) => ({ type: 'input_text', text, ...breakpoint })
  return {
    tools: [{ type: 'function', name: 'look', parameters: { type: 'object' } }],
    input: [
      { role: 'developer', content: [part('A'), part('B')] },
      { role: 'user', content: [part('hi')] },
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: [part('rain')] },
      { role: 'user', content: [part('and?')] },
    ],
  }
}

const places = {
  responses: {
    tools: [],
    system: ['/input/0/content/0', '/input/0/content/1'],
    turns: ['/input/1/content/0', '/input/3/output/0', '/input/4/content/0'],
  },
  chat: {
    tools: ['/tools/0'],
    system: ['/messages/0/content/0', '/messages/0/content/1'],
    turns: ['/messages/1/content/0', '/messages/3/content/0', '/messages/4'],
  },
  messages: {
    tools: ['/tools/0'],
    system: ['/system/0', '/system/1'],
    turns: ['/messages/0/content/0', '/messages/2/content/0/content/0', '/messages/2/content/1'],
  },
}

describe.each(markedPairs)('$surface → $upstream ($upstreamModel), cache marks', (pair) => {
  test('every one is kept or named', async () => {
    const { surface, upstream, upstreamModel } = pair
    const response = await stage.ask(pair, marked[surface])
    await response.text()
    const sent = JSON.stringify(stage.upstream.calls.at(-1)?.json())
    const kept = sent.match(/"(cache_control|prompt_cache_breakpoint)"/g)?.length ?? 0
    const named = (response.headers.get('x-tollgate-warnings') ?? '')
      .split(', ')
      .flatMap(
        (entry) => /^cache_mark_dropped;field=(.*)\/(?:cache_control|prompt_cache_breakpoint)$/.exec(entry)?.[1] ?? [],
      )
    const { tools, system, turns } = places[surface]
    const all = [...tools, ...system, ...turns]
    const lost: Readonly<Record<DialectName, readonly string[]>> = {
      // Four are taken, the last four. A provider of the caller's dialect judges for itself.
      messages: surface === upstream ? [] : all.slice(0, -4),
      gemini: all,
      // Tools take none there.
      responses: surface === upstream ? [] : [...tools, ...system.slice(0, 1)],
      // Nor do results of tools.
      chat: surface === upstream ? [] : upstreamModel === 'plain-1' ? all : [...tools, ...turns.slice(1, 2)],
    }
    expect(named.toSorted()).toEqual([...lost[upstream]].sort())
    expect(kept).toBe(all.length - named.length)
  })
})

/** What is translated also on its way to Gemini, because the operator would pay for it or it is not known. */
const translatedGemini = [
  ['Files by id', 'R', ['contents[0].parts[0]']],
  ['Other tools that the provider runs', 'R', ['tools[0].codeExecution']],
  ['Web search as a tool', 'W', ['googleSearch_dropped']],
  ['An unknown field', 'W', ['tomorrow_dropped']],
]

const ownDialect = pairs.filter(({ surface, upstream }) => surface === upstream)

describe.each(ownDialect)('$surface → $upstream ($upstreamModel), the same dialect', (pair) => {
  test('a provider gets every field as it was sent, except those that would not be charged', async () => {
    for (const fixture of [...requestFixtures.values()].flat()) {
      const { mark, notes } = await cellOf(pair, fixture, false)
      // Threads would have to be kept here; nothing else that is paid for is judged on the way.
      expect([fixture.feature, mark, notes]).toBeOneOf([
        [fixture.feature, 'P', []],
        [fixture.feature, '–', []],
        ['Threads stored by the provider', 'R', ['thread']],
        ['Responses stored by the provider', 'R', ['previous_response_id']],
        // Nothing is stored at the provider. Items that are kept here: test/clients/item-references.test.ts.
        ['Items by reference', 'R', ['input[0].id']],
        ['Conversations stored by the provider', 'R', ['conversation']],
        ['Prompts stored by the provider', 'R', ['prompt']],
        ['Background processing', 'R', ['background']],
        ['Other tools that the provider runs', 'R', ['tools[0]']],
        ...(pair.surface === 'responses'
          ? [
              [
                fixture.feature,
                'W',
                [fixture.feature.endsWith('in the history') ? 'thinking_dropped' : 'store_dropped'],
              ],
            ]
          : []),
        ...(pair.surface === 'gemini' ? translatedGemini : []),
        ['Output cap above the model’s', 'W', ['max_tokens_clamped']],
      ])
    }
  })
})
