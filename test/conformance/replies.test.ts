// Every answer on every way from provider to caller, streamed and whole, read from the bytes under the strict grammar
// and by the official clients: words, calls, stop, usage and cost are those of the fixture, so they are the same in all
// cells.

import { afterAll, describe, expect, test } from 'bun:test'
import { openStage, type Pair, replyPair, replyPairs, withModel } from './cells.ts'
import { pagePath, repliesTable, tableIn } from './compatibility.ts'
import { chatBytes } from './replies/chat-bytes.ts'
import { replyFixtures } from './replies/index.ts'
import { messagesBytes, textBlock } from './replies/messages-bytes.ts'
import { askBody, meaningOf, readReply } from './replies/read-reply.ts'
import { isMadeOf, type ReplyFixture } from './replies/reply-fixture.ts'
import { answerWith, cellOfReadings, type Reading, readings } from './reply-cells.ts'

const stage = await openStage(() => {})
afterAll(() => stage.stop())

const known = new Map<string, Promise<Reading[] | undefined>>()

/** The page has a table of the same answers. */
function readingsOf(pair: Pair, fixture: ReplyFixture): Promise<Reading[] | undefined> {
  const name = [pair.surface, pair.model, fixture.feature].join()
  const list = known.get(name) ?? readings(stage, pair, fixture)
  known.set(name, list)
  return list
}

describe.each(replyPairs)('$upstream → $surface', (pair) => {
  for (const fixture of replyFixtures) {
    test(fixture.feature, async () => {
      const list = await readingsOf(pair, fixture)
      for (const { by, mode, wrong } of list ?? []) expect([by, mode, wrong]).toEqual([by, mode, []])
      // Bytes and two clients, both ways; or the pair cannot have it, which the fixture says.
      expect(list?.length ?? 0).toBe(expectedReadings(pair, fixture))
    })
  }

  test('the same however the stream is cut', async () => {
    for (const fixture of replyFixtures) {
      const bytes = fixture[pair.upstream]
      const model = withModel(pair, fixture.models?.[pair.upstream] ?? pair.upstreamModel)
      const body = askBody(pair, fixture, { stream: true })
      if (!bytes || !body) continue
      const said = async (cuts: readonly number[]) => {
        stage.upstream.handle(answerWith((dialect) => fixture[dialect], cuts))
        return comparable(await (await stage.ask(model, body)).text())
      }
      const whole = await said([])
      const { length } = Buffer.from(bytes.stream)
      for (const step of [length / 3, length / 7, length / 23]) {
        const cuts = Array.from({ length: Math.ceil(length / step) - 1 }, (_, at) => Math.floor((at + 1) * step))
        expect([fixture.feature, await said(cuts)]).toEqual([fixture.feature, whole])
      }
    }
  })

  test('usage that was not reported is estimated, on every lane', async () => {
    const fixture = fixtureNamed('Text')
    const bare = {
      chat: fixture.chat.stream.replace(/data: \{[^\n]*"choices":\[\],"usage"[^\n]*\n\n/, ''),
      messages: fixture.messages?.stream.replaceAll(/"(?:input|output)_tokens":\d+/g, '"x":0') ?? '',
      gemini: fixture.gemini?.stream.replaceAll('"usageMetadata"', '"x"') ?? '',
      responses: fixture.responses?.stream.replaceAll('"usage"', '"x"') ?? '',
    }
    stage.upstream.handle(answerWith((dialect) => ({ stream: bare[dialect], whole: '' })))
    const response = await stage.ask(pair, askBody(pair, fixture, { stream: true }) ?? {})
    const { content } = readReply(pair.surface, await response.text(), { stream: true })
    expect(content.usage?.input).toBeGreaterThan(0)
    expect(content.usage?.output).toBeGreaterThan(0)
    expect(content.usage?.cost).toBeGreaterThan(0)
  })
})

test('docs/compatibility.md has these cells', async () => {
  const table = await repliesTable(async (pair, fixture) =>
    cellOfReadings(pair, fixture, await readingsOf(pair, fixture)),
  )
  expect(tableIn(await Bun.file(pagePath).text(), 'replies')).toBe(table)
})

test('a stop sequence that the provider cannot match is matched here, and ends its stream', async () => {
  const pair = withModel(replyPair('messages', 'chat'), 'gpt-5.6')
  stage.upstream.handle(
    answerWith(() =>
      chatBytes({
        deltas: [{ content: 'One, E' }, { content: 'ND two' }],
        message: {},
        finish: 'stop',
      }),
    ),
  )
  for (const stream of [true, false]) {
    const body = { max_tokens: 9, messages: [{ role: 'user', content: 'go' }], stop_sequences: ['END'], stream }
    const read = readReply('messages', await (await stage.ask(pair, body)).text(), { stream })
    expect(read.violations).toEqual([])
    expect(meaningOf(read.content)).toMatchObject({ text: 'One, ', stop: 'end', stopSequence: 'END' })
  }
})

test('an answer of several texts is one text to a chat caller, in the order of the blocks', async () => {
  const pair = replyPair('chat', 'messages')
  stage.upstream.handle(
    answerWith(() => messagesBytes({ blocks: [textBlock('One, '), textBlock('two.')], stop: 'end_turn' })),
  )
  for (const stream of [true, false]) {
    const body = askBody(pair, fixtureNamed('Text'), { stream }) ?? {}
    const { content } = readReply('chat', await (await stage.ask(pair, body)).text(), { stream })
    expect(content.text).toBe('One, two.')
  }
})

function expectedReadings(pair: Pair, fixture: ReplyFixture): number {
  const isAsked = !fixture.asks || fixture.asks[pair.surface] !== undefined
  const isOwnGap = isMadeOf(fixture, pair.upstream) && pair.surface === pair.upstream
  if (!fixture[pair.upstream] || !isAsked || isOwnGap) return 0
  if (pair.surface === 'gemini') return 2
  return fixture.beyondAccumulators ? 4 : 6
}

function fixtureNamed(feature: string): ReplyFixture {
  const found = replyFixtures.find((fixture) => fixture.feature === feature)
  if (!found) throw new Error(`no fixture ${feature}`)
  return found
}

/** Without what differs between two answers: the time, and ids made from that of the request. */
function comparable(body: string): string {
  return body.replaceAll(/"created":\d+/g, '"created":0').replaceAll(/(?<=_)01[0-9A-Z]{24}/g, '')
}
