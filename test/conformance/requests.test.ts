// Every request fixture on every pair of surface and provider, streamed and not, through the real gateway: it arrives,
// or the caller is told. What exactly becomes of each stands in docs/compatibility.md.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openStage, pairs, type Stage } from './cells.ts'
import { answerHello, bodyOf, type Cell, requestCell } from './request-cells.ts'
import { geminiShapes } from './requests/gemini-shapes.ts'
import { requestFixtures } from './requests/index.ts'
import { responsesShapes } from './requests/responses-shapes.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage(answerHello)
})
afterAll(() => stage.stop())

test.each([
  ['gemini', geminiShapes],
  ['responses', responsesShapes],
])('what is looked for at %s has a row', (_, shapes) => {
  const features = [...requestFixtures.values()].flat().map(({ feature }) => feature)
  expect(Object.keys(shapes).filter((feature) => !features.includes(feature))).toEqual([])
})

describe.each(pairs)('$surface → $upstream ($upstreamModel)', (pair) => {
  for (const fixture of [...requestFixtures.values()].flat()) {
    test(fixture.feature, async () => {
      const cell = await requestCell(stage, pair, fixture, { stream: true })
      expect<Cell['mark'] | string>(cell.mark === 'lost' ? `lost: ${cell.notes}` : cell.mark).toBeOneOf([
        'P',
        'E',
        'W',
        'R',
        '–',
      ])
      expect(await requestCell(stage, pair, fixture, { stream: false })).toEqual(cell)
    })
  }

  test('x-tollgate-strict refuses whatever else would be a warning', async () => {
    for (const fixture of [...requestFixtures.values()].flat()) {
      const body = bodyOf(pair, fixture)
      if (!body) continue
      const { mark, notes } = await requestCell(stage, pair, fixture, { stream: false })
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

const ownDialect = pairs.filter(({ surface, upstream }) => surface === upstream)

describe.each(ownDialect)('$surface → $upstream ($upstreamModel), the same dialect', (pair) => {
  test('a provider gets every field as it was sent, but what nobody pays for', async () => {
    for (const fixture of [...requestFixtures.values()].flat()) {
      const { mark, notes } = await requestCell(stage, pair, fixture, { stream: false })
      // Threads would have to be kept here; nothing else that is paid for is judged on the way.
      expect([fixture.feature, mark, notes]).toBeOneOf([
        [fixture.feature, 'P', []],
        [fixture.feature, '–', []],
        ['Threads kept by the provider', 'R', ['thread']],
        ['Output cap above the model’s', 'W', ['max_tokens_clamped']],
        ['Faster processing for money', 'W', ['service_tier_dropped']],
      ])
    }
  })
})
