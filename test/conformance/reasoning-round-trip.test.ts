// Reasoning that a provider signed goes back to it as it came, whichever surface the caller uses and whatever the
// surface made of it in between.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { listOf, membersOf } from '../../src/cli/conformance/violation.ts'
import { openStage, type Pair, replyPairs, type Stage } from './cells.ts'
import { callOpening, chatBytes, wholeCall } from './replies/chat-bytes.ts'
import { callBlock, messagesBytes, sealedBlock, thinkingBlock } from './replies/messages-bytes.ts'
import { readReply } from './replies/read-reply.ts'
import { answerWith } from './reply-cells.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage(() => {})
})
afterAll(() => stage.stop())

const signature = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/8Ug=='
const blocks = [
  { type: 'thinking', thinking: 'I must 看 look.', signature },
  { type: 'redacted_thinking', data: 'EmwKAhgB' },
]
const details = [
  { type: 'reasoning.summary', summary: 'I must 看 look.', format: 'openai-responses-v1', index: 0 },
  { type: 'reasoning.encrypted', data: 'gAAAAABo+/=', id: 'rs_1', format: 'openai-responses-v1', index: 0 },
]
const bytes = {
  chat: chatBytes({
    deltas: [{ reasoning_details: details }, callOpening(0, 'call_1', 'look', '{}')],
    message: { reasoning_details: details, tool_calls: [wholeCall('call_1', 'look', '{}')] },
    finish: 'tool_calls',
  }),
  messages: messagesBytes({
    blocks: [thinkingBlock(signature, 'I must ', '看 look.'), sealedBlock('EmwKAhgB'), callBlock('call_1', 'look')],
    stop: 'tool_use',
  }),
}

const tools = {
  chat: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }],
  messages: [{ name: 'look', input_schema: { type: 'object', properties: {} } }],
}

function firstBody({ surface }: Pair): object {
  return { max_tokens: 3000, messages: [{ role: 'user', content: 'go' }], tools: tools[surface] }
}

/** The conversation with the answer in it, as a program of the surface would send it back. */
function nextBody(pair: Pair, proof: readonly unknown[]): object {
  const first = { role: 'user', content: 'go' }
  const messages =
    pair.surface === 'chat'
      ? [
          first,
          {
            role: 'assistant',
            content: null,
            reasoning_details: proof,
            tool_calls: [wholeCall('call_1', 'look', '{}')],
          },
          { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
        ]
      : [
          first,
          { role: 'assistant', content: [...proof, { type: 'tool_use', id: 'call_1', name: 'look', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'rain' }] },
        ]
  return { ...firstBody(pair), messages }
}

describe.each(replyPairs)('$upstream → $surface and back', (pair) => {
  test.each([true, false])('streamed: %p', async (stream) => {
    stage.upstream.handle(answerWith((dialect) => bytes[dialect]))
    const response = await stage.ask(pair, { ...firstBody(pair), stream })
    const { told } = readReply(pair.surface, await response.text(), { stream })
    expect(told.proof.length).toBeGreaterThan(0)

    const again = await stage.ask(pair, { ...nextBody(pair, told.proof), stream })
    await again.text()
    expect([again.status, again.headers.get('x-tollgate-warnings')]).toEqual([200, null])
    const sent = membersOf(stage.upstream.calls.at(-1)?.json())
    const turn = membersOf(listOf(sent.messages)[1])
    if (pair.upstream === 'chat') expect(turn.reasoning_details).toEqual(details)
    else expect(listOf(turn.content).slice(0, 2)).toEqual(blocks)
  })
})
