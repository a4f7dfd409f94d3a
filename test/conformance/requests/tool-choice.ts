// Which of the tools may or must be called, and how many at once.

import { absent, either } from '../shape.ts'
import { chatTool, messagesTool, type RequestFixture, schema, unreasoned } from './request-fixture.ts'

const chatTools = { tools: [chatTool('look')] }
const messagesTools = { tools: [messagesTool('look')], ...unreasoned }
const chatOffered = { tools: [{ type: 'function', function: { name: 'look', parameters: schema } }] }
const messagesOffered = { tools: [{ name: 'look', input_schema: schema }] }
const auto = { type: 'auto' }
const named = { type: 'function', function: { name: 'look' } }

export const toolChoiceFixtures: readonly RequestFixture[] = [
  {
    feature: 'Tool choice: auto',
    chat: { ...chatTools, tool_choice: 'auto' },
    messages: { ...messagesTools, tool_choice: auto },
    carried: { chat: { ...chatOffered, tool_choice: 'auto' }, messages: { ...messagesOffered, tool_choice: auto } },
  },
  {
    feature: 'Tool choice: none',
    chat: { ...chatTools, tool_choice: 'none' },
    messages: { ...messagesTools, tool_choice: { type: 'none' } },
    carried: {
      chat: { ...chatOffered, tool_choice: 'none' },
      messages: { ...messagesOffered, tool_choice: { type: 'none' } },
    },
  },
  {
    feature: 'Tool choice: any',
    chat: { ...chatTools, tool_choice: 'required' },
    messages: { ...messagesTools, tool_choice: { type: 'any' } },
    carried: { chat: { tool_choice: 'required' }, messages: { tool_choice: { type: 'any' } } },
  },
  {
    feature: 'Tool choice: one by name',
    chat: { ...chatTools, tool_choice: named },
    messages: { ...messagesTools, tool_choice: { type: 'tool', name: 'look' } },
    carried: { chat: { tool_choice: named }, messages: { tool_choice: { type: 'tool', name: 'look' } } },
  },
  {
    feature: 'Tool choice: some of them',
    chat: {
      tools: [chatTool('look'), chatTool('other')],
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [named] } },
    },
    carried: { chat: { tool_choice: { type: 'allowed_tools' } }, messages: { tool_choice: { type: 'allowed_tools' } } },
    emulated: { messages: { ...messagesOffered, tool_choice: either(auto, absent) } },
  },
  {
    feature: 'One call at a time',
    chat: { ...chatTools, parallel_tool_calls: false },
    messages: { ...messagesTools, tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    carried: {
      chat: { parallel_tool_calls: false },
      messages: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    },
  },
]
