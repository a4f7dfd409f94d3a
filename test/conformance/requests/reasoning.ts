// How much to reason, and reasoning that comes back with the history.

import { issuerName, writeSignature } from '../../../src/dialects/canonical/signature.ts'
import { absent, either, some, texts } from '../shape.ts'
import { chatTool, hi, messagesTool, type RequestFixture } from './request-fixture.ts'

const effort = (word: 'low' | 'high' | 'max'): RequestFixture => ({
  feature: `Effort: ${word}`,
  chat: { reasoning_effort: word },
  messages: { output_config: { effort: word } },
  carried: {
    chat: { reasoning_effort: word },
    messages: either(
      { output_config: { effort: word } },
      // Models without the dial have a budget instead.
      { thinking: { type: 'enabled', budget_tokens: (tokens) => typeof tokens === 'number' } },
    ),
  },
})

const thinking = { type: 'thinking', thinking: 'Let me see.', signature: 'EqQBCgIYAg==' }
const sealed = { type: 'redacted_thinking', data: 'EmwKAhgB' }
const detail = {
  type: 'reasoning.text',
  text: 'Let me see.',
  signature: 'EqQBCgIYAg==',
  format: 'anthropic-claude-v1',
  index: 0,
}
const sealedDetail = { type: 'reasoning.encrypted', data: 'EmwKAhgB', format: 'anthropic-claude-v1', index: 0 }
const after = { role: 'user', content: 'go on' }
const said = { type: 'text', text: 'Hello.' }
const chatHistory = (...details: unknown[]) => ({
  messages: [hi, { role: 'assistant', content: 'Hello.', reasoning_details: details }, after],
})
const messagesHistory = (...blocks: unknown[]) => ({
  messages: [hi, { role: 'assistant', content: [...blocks, said] }, after],
})
/** A signature of the chat provider's reasoning model, and one of a third provider. */
export const own = {
  ...thinking,
  signature: writeSignature({
    issuer: issuerName('chatty', 'openai-chat', 'gpt-5.6'),
    blob: '[{"type":"x","data":"1"}]',
  }),
}
const foreign = { ...thinking, signature: writeSignature({ issuer: 'another/openai-chat', blob: '[]' }) }

export const reasoningFixtures: readonly RequestFixture[] = [
  {
    feature: 'Effort: none',
    chat: { reasoning_effort: 'none' },
    messages: { thinking: { type: 'disabled' } },
    carried: {
      // A model that has to be asked to reason is not asked.
      chat: either({ reasoning_effort: 'none' }, { model: 'plain-1', reasoning_effort: absent }),
      messages: { thinking: { type: 'disabled' } },
    },
  },
  effort('low'),
  effort('high'),
  effort('max'),
  {
    feature: 'Effort together with tools',
    chat: { reasoning_effort: 'high', tools: [chatTool('look')] },
    messages: { output_config: { effort: 'high' }, tools: [messagesTool('look')] },
    carried: {
      chat: { reasoning_effort: 'high', tools: [{}] },
      messages: either(
        { output_config: { effort: 'high' }, tools: [{}] },
        { thinking: { type: 'enabled' }, tools: [{}] },
      ),
    },
  },
  {
    feature: 'Adaptive thinking',
    messages: { thinking: { type: 'adaptive' } },
    carried: { chat: { reasoning_effort: absent }, messages: { thinking: { type: 'adaptive' } } },
  },
  {
    feature: 'Thinking with a budget',
    messages: { max_tokens: 6000, thinking: { type: 'enabled', budget_tokens: 4000 } },
    carried: { chat: { reasoning_effort: 'medium' }, messages: { thinking: { budget_tokens: 4000 } } },
  },
  {
    feature: 'Thinking only between tool calls',
    messages: { thinking: { type: 'between_tools' } },
    carried: { chat: { thinking: { type: 'between_tools' } }, messages: { thinking: { type: 'between_tools' } } },
    emulated: { chat: either({ reasoning_effort: 'none' }, { model: 'plain-1', reasoning_effort: absent }) },
  },
  {
    feature: 'Claude’s signed thinking in the history',
    chat: chatHistory(detail),
    messages: messagesHistory(thinking),
    carried: {
      chat: { messages: some({ role: 'assistant', reasoning_details: some({ signature: detail.signature }) }) },
      messages: { messages: [{}, { role: 'assistant', content: [thinking, said] }, {}] },
    },
  },
  {
    feature: 'Claude’s encrypted thinking in the history',
    chat: chatHistory(sealedDetail),
    messages: messagesHistory(sealed),
    carried: {
      chat: { messages: some({ role: 'assistant', reasoning_details: some({ data: sealed.data }) }) },
      messages: { messages: [{}, { role: 'assistant', content: [sealed, said] }, {}] },
    },
  },
  {
    feature: 'Reasoning of gpt-5.6 in the history',
    messages: messagesHistory(own),
    carried: {
      chat: { messages: some({ role: 'assistant', reasoning_details: [{ type: 'x', data: '1' }] }) },
      // Nothing that Claude could read: the turn arrives without it.
      messages: { messages: [{}, { role: 'assistant', content: [said] }, {}] },
    },
  },
  {
    feature: 'Another provider’s reasoning in the history',
    messages: messagesHistory(foreign),
    carried: {
      chat: { messages: some({ role: 'assistant', reasoning_details: absent, content: saysThinking }) },
      messages: { messages: [{}, { role: 'assistant', content: [said] }, {}] },
    },
  },
  {
    feature: 'Unsigned reasoning in the history',
    chat: { messages: [hi, { role: 'assistant', content: 'Hello.', reasoning_content: 'Let me see.' }, after] },
    carried: {
      chat: { messages: some({ role: 'assistant', reasoning_content: 'Let me see.' }) },
      messages: { messages: some({ role: 'assistant', content: some({ type: 'thinking' }) }) },
    },
  },
]

function saysThinking(content: unknown): boolean {
  return !texts('Hello.')(content)
}
