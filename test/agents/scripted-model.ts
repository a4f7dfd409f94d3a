// A model that calls the tools of a script, one after the other, and then answers: in each dialect, as a provider sends it.

import { type DialectName, dialectOfPath } from '../conformance/cells.ts'
import { chatBytes } from '../conformance/replies/chat-bytes.ts'
import { callPart, geminiBytes } from '../conformance/replies/gemini-bytes.ts'
import { callBlock, messagesBytes, textBlock, thinkingBlock } from '../conformance/replies/messages-bytes.ts'
import type { ProviderBytes } from '../conformance/replies/reply-fixture.ts'
import { callItem, customItem, messageItem, responsesBytes } from '../conformance/replies/responses-bytes.ts'
import { answerWith } from '../conformance/reply-cells.ts'
import type { UpstreamCall, UpstreamHandler } from '../parts/upstream.ts'

export interface Step {
  readonly tool: string
  /** The arguments as JSON, or the text of a custom tool. */
  readonly input: string
  /** A tool for free text. Only Responses has them; elsewhere the text is one argument of a function. */
  readonly isCustom?: boolean
}

/** Takes the next step by the number of results in the conversation. Requests without tools get the answer at once. */
export function scriptedModel(steps: readonly Step[], answer: string): UpstreamHandler {
  return (call, reply) => {
    const done = resultsIn(call)
    const step = Array.isArray(call.json().tools) ? steps[done] : undefined
    return answerWith((dialect) => move(dialect, done, step, answer))(call, reply)
  }
}

function move(dialect: DialectName, done: number, step: Step | undefined, answer: string): ProviderBytes {
  const id = `call_${done}`
  const name = step?.tool ?? ''
  const json = step?.isCustom ? JSON.stringify({ input: step.input }) : (step?.input ?? '')
  switch (dialect) {
    case 'chat': {
      const call = { id, type: 'function', function: { name, arguments: json } }
      return step
        ? chatBytes({
            deltas: [{ reasoning_content: 'Hm.' }, { tool_calls: [{ index: 0, ...call }] }],
            message: { content: null, tool_calls: [call] },
            finish: 'tool_calls',
          })
        : chatBytes({ deltas: [{ content: answer }], message: { content: answer }, finish: 'stop' })
    }
    case 'messages': {
      const thinking = thinkingBlock(`sig${done}`, 'Hm.')
      return step
        ? messagesBytes({ blocks: [thinking, callBlock(id, name, json)], stop: 'tool_use' })
        : messagesBytes({ blocks: [thinking, textBlock(answer)], stop: 'end_turn' })
    }
    case 'gemini':
      return geminiBytes({
        records: [[step ? callPart(id, name, json, { thoughtSignature: 'c2ln' }) : { text: answer }]],
      })
    case 'responses':
      if (!step) return responsesBytes({ items: [messageItem(0, answer)] })
      return responsesBytes({
        items: [step.isCustom ? customItem(0, id, name, step.input) : callItem(0, id, name, json)],
      })
  }
}

function resultsIn(call: UpstreamCall): number {
  const body = JSON.stringify(call.json())
  const marks = { chat: '"role":"tool"', messages: '"type":"tool_result"', gemini: '"functionResponse":' }
  const dialect = dialectOfPath(call.path)
  if (dialect === 'responses') return body.match(/"type":"(function|custom_tool)_call_output"/g)?.length ?? 0
  return body.split(marks[dialect]).length - 1
}
