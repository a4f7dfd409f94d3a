// Callers that offer `functions`, the older form of tools, read the call in `function_call`; an answer in `tool_calls`
// would never be run by them. A provider of another dialect knows nothing of the older form.

import { afterAll, describe, expect, test } from 'bun:test'
import { openStage, pairs } from './cells.ts'
import { listOf, membersOf } from './checker/violation.ts'
import { callPart, geminiBytes } from './replies/gemini-bytes.ts'
import { callBlock, messagesBytes } from './replies/messages-bytes.ts'
import { callItem, responsesBytes } from './replies/responses-bytes.ts'
import { answerWith } from './reply-cells.ts'

const stage = await openStage(() => {})
afterAll(() => stage.stop())

const city = '{"city":"Bern"}'
const bytes = {
  messages: messagesBytes({ blocks: [callBlock('call_1', 'look', '{"city":', '"Bern"}')], stop: 'tool_use' }),
  gemini: geminiBytes({ records: [[callPart('call_1', 'look', city)]] }),
  responses: responsesBytes({ items: [callItem(0, 'call_1', 'look', city)] }),
}

const body = {
  max_tokens: 3000,
  messages: [{ role: 'user', content: 'go' }],
  functions: [{ name: 'look', parameters: { type: 'object', properties: { city: { type: 'string' } } } }],
}

const translated = pairs.filter(({ surface, upstream }) => surface === 'chat' && upstream !== 'chat')

describe.each(translated)('$upstream $upstreamModel → chat', (pair) => {
  test('has the call where the caller looks for it', async () => {
    stage.upstream.handle(answerWith((dialect) => bytes[dialect as keyof typeof bytes]))
    const response = await stage.ask(pair, body)
    const choice = membersOf(listOf(membersOf(await response.json()).choices)[0])
    const message = membersOf(choice.message)
    expect(message.function_call).toEqual({ name: 'look', arguments: city })
    expect(message).not.toHaveProperty('tool_calls')
    expect(choice.finish_reason).toBe('function_call')
  })

  test('has it there in a stream, too', async () => {
    stage.upstream.handle(answerWith((dialect) => bytes[dialect as keyof typeof bytes]))
    const response = await stage.ask(pair, { ...body, stream: true })
    const records = (await response.text()).split('\n\n').filter((record) => record.startsWith('data: {'))
    const choices = records.flatMap((record) => listOf(membersOf(JSON.parse(record.slice(6))).choices)).map(membersOf)
    const called = choices.map(({ delta }) => membersOf(membersOf(delta).function_call))
    expect(called.map(({ name }) => name ?? '').join('')).toBe('look')
    expect(called.map((each) => each.arguments ?? '').join('')).toBe(city)
    expect(choices.at(-1)?.finish_reason).toBe('function_call')
  })
})
