// Tools, calls and results.

import { jsonText, saying, some, texts } from '../shape.ts'
import { chatTool, hi, messagesTool, nowhere, type RequestFixture, schema, unreasoned } from './request-fixture.ts'

const chatTools = { tools: [chatTool('look')] }
const messagesTools = { tools: [messagesTool('look')], ...unreasoned }
const chatOffered = { tools: [{ type: 'function', function: { name: 'look', parameters: schema } }] }
const messagesOffered = { tools: [{ name: 'look', input_schema: schema }] }

const chatCall = (id: string, city: string) => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: `{"city":"${city}"}` },
})
const chatCalled = (id: string, city: string) => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: jsonText({ city }) },
})
const use = (id: string, city: string) => ({ type: 'tool_use', id, name: 'look', input: { city } })
const answered = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content: texts(content) })
const result = (id: string, content: string) => ({ type: 'tool_result', tool_use_id: id, content: texts(content) })

const web = { type: 'web_search_20250305', name: 'web_search' }

export const toolFixtures: readonly RequestFixture[] = [
  {
    feature: 'Tools',
    chat: chatTools,
    messages: { tools: [messagesTool('look')] },
    carried: { chat: chatOffered, messages: messagesOffered },
  },
  {
    feature: 'A tool call and its result',
    chat: {
      ...chatTools,
      messages: [
        hi,
        { role: 'assistant', content: 'Looking.', tool_calls: [chatCall('c1', 'Bern')] },
        { role: 'tool', tool_call_id: 'c1', content: 'rain' },
      ],
    },
    messages: {
      ...messagesTools,
      messages: [
        hi,
        { role: 'assistant', content: [{ type: 'text', text: 'Looking.' }, use('c1', 'Bern')] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'rain' }] },
      ],
    },
    carried: {
      chat: {
        messages: [
          { role: 'user' },
          { role: 'assistant', content: texts('Looking.'), tool_calls: [chatCalled('c1', 'Bern')] },
          answered('c1', 'rain'),
        ],
      },
      messages: {
        messages: [
          { role: 'user' },
          { role: 'assistant', content: [{ type: 'text', text: 'Looking.' }, use('c1', 'Bern')] },
          { role: 'user', content: [result('c1', 'rain')] },
        ],
      },
    },
  },
  {
    feature: 'Parallel calls and their results',
    chat: {
      ...chatTools,
      messages: [
        hi,
        { role: 'assistant', content: null, tool_calls: [chatCall('c1', 'Bern'), chatCall('c2', 'Oslo')] },
        { role: 'tool', tool_call_id: 'c2', content: 'snow' },
        { role: 'tool', tool_call_id: 'c1', content: 'rain' },
        { role: 'user', content: 'and?' },
      ],
    },
    messages: {
      ...messagesTools,
      messages: [
        hi,
        { role: 'assistant', content: [use('c1', 'Bern'), use('c2', 'Oslo')] },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'c2', content: 'snow' },
            { type: 'tool_result', tool_use_id: 'c1', content: 'rain' },
            { type: 'text', text: 'and?' },
          ],
        },
      ],
    },
    carried: {
      chat: {
        messages: [
          { role: 'user' },
          { role: 'assistant', tool_calls: [chatCalled('c1', 'Bern'), chatCalled('c2', 'Oslo')] },
          answered('c2', 'snow'),
          answered('c1', 'rain'),
          { role: 'user', content: texts('and?') },
        ],
      },
      messages: {
        messages: [
          { role: 'user' },
          { role: 'assistant', content: [use('c1', 'Bern'), use('c2', 'Oslo')] },
          { role: 'user', content: [result('c2', 'snow'), result('c1', 'rain'), { type: 'text', text: 'and?' }] },
        ],
      },
    },
  },
  {
    feature: 'A result that is an error',
    // The dialect has no such member; some hosts and clients do.
    chat: {
      ...chatTools,
      messages: [
        hi,
        { role: 'assistant', content: null, tool_calls: [chatCall('c1', 'Bern')] },
        { role: 'tool', tool_call_id: 'c1', content: 'boom', is_error: true },
      ],
    },
    messages: {
      ...messagesTools,
      messages: [
        hi,
        { role: 'assistant', content: [use('c1', 'Bern')] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'boom', is_error: true }] },
      ],
    },
    carried: {
      chat: { messages: some({ role: 'tool', is_error: true }) },
      messages: { messages: some({ content: [{ type: 'tool_result', is_error: true }] }) },
    },
    emulated: { chat: { messages: some({ role: 'tool', content: saying('[tool error] boom') }) } },
  },
  {
    feature: 'A call without a result',
    chat: {
      ...chatTools,
      messages: [hi, { role: 'assistant', content: null, tool_calls: [chatCall('c1', 'Bern')] }, hi],
    },
    messages: { ...messagesTools, messages: [hi, { role: 'assistant', content: [use('c1', 'Bern')] }, hi] },
    // The provider of the caller's own dialect judges it itself.
    carried: {
      chat: { messages: [{}, { tool_calls: [{ id: 'c1' }] }, { role: 'user' }] },
      messages: { messages: [{}, { content: [{ type: 'tool_use', id: 'c1' }] }, { role: 'user' }] },
    },
  },
  {
    feature: 'Strict schemas',
    chat: {
      tools: [chatTool('look', { strict: true, parameters: { ...schema, additionalProperties: false } })],
    },
    messages: {
      ...unreasoned,
      tools: [messagesTool('look', { strict: true, input_schema: { ...schema, additionalProperties: false } })],
    },
    carried: { chat: { tools: [{ function: { strict: true } }] }, messages: { tools: [{ strict: true }] } },
  },
  {
    feature: 'A schema with alternatives',
    chat: { tools: [chatTool('look', { parameters: { anyOf: [schema, { type: 'object', properties: {} }] } })] },
    carried: {
      chat: { tools: [{ function: { parameters: { anyOf: [schema, { type: 'object' }] } } }] },
      messages: { tools: [{ input_schema: { anyOf: [schema, { type: 'object' }] } }] },
    },
    emulated: { messages: { tools: [{ input_schema: { type: 'object', properties: schema.properties } }] } },
  },
  {
    feature: 'Custom tools with free text',
    chat: { tools: [{ type: 'custom', custom: { name: 'patch', description: 'Applies it.' } }] },
    carried: {
      chat: { tools: [{ type: 'custom', custom: { name: 'patch' } }] },
      messages: { tools: [{ type: 'custom', custom: { name: 'patch' } }] },
    },
    emulated: {
      chat: { tools: [{ type: 'function', function: { name: 'patch', parameters: { required: ['input'] } } }] },
      messages: { tools: [{ name: 'patch', input_schema: { properties: { input: { type: 'string' } } } }] },
    },
  },
  {
    feature: 'Custom tools with a grammar',
    chat: {
      tools: [
        {
          type: 'custom',
          custom: {
            name: 'patch',
            format: { type: 'grammar', grammar: { syntax: 'regex', definition: 'a+' } },
          },
        },
      ],
    },
    carried: {
      chat: { tools: [{ custom: { format: { type: 'grammar' } } }] },
      messages: { tools: [{ custom: { format: { type: 'grammar' } } }] },
    },
  },
  {
    feature: 'Legacy functions',
    chat: {
      functions: [{ name: 'look', description: 'Looks it up.', parameters: schema }],
      function_call: { name: 'look' },
      messages: [
        hi,
        { role: 'assistant', content: null, function_call: { name: 'look', arguments: '{"city":"Bern"}' } },
        { role: 'function', name: 'look', content: 'rain' },
      ],
    },
    carried: {
      chat: { functions: [{ name: 'look' }], messages: some({ role: 'function', content: 'rain' }) },
      messages: {
        ...messagesOffered,
        messages: [
          { role: 'user' },
          { role: 'assistant', content: [{ type: 'tool_use', name: 'look', input: { city: 'Bern' } }] },
          { role: 'user', content: [{ type: 'tool_result', content: texts('rain') }] },
        ],
      },
    },
  },
  {
    feature: 'Claude’s tools that the caller runs (bash, editor, memory)',
    messages: { ...unreasoned, tools: [{ type: 'bash_20250124', name: 'bash' }] },
    carried: {
      chat: { tools: [{ type: 'bash_20250124' }] },
      messages: { tools: [{ type: 'bash_20250124', name: 'bash' }] },
    },
    emulated: {
      chat: { tools: [{ type: 'function', function: { name: 'bash', parameters: { type: 'object' } } }] },
    },
  },
  {
    feature: 'Claude’s tools that Anthropic runs (web search, …)',
    messages: { tools: [web] },
    carried: { chat: { tools: [web] }, messages: { tools: [web] } },
  },
  {
    feature: 'Tools in a namespace',
    carried: nowhere,
    emulated: {
      chat: { tools: [{ type: 'function', function: { name: 'git__look', parameters: schema } }] },
      messages: { tools: [{ name: 'git__look', input_schema: schema }] },
    },
  },
  { feature: 'Tools in an input item', carried: { chat: chatOffered, messages: messagesOffered } },
  {
    feature: 'A local shell',
    carried: nowhere,
    emulated: {
      chat: { tools: [{ type: 'function', function: { name: 'local_shell' } }] },
      messages: { tools: [{ name: 'local_shell' }] },
    },
  },
  ...[
    'Web search as a tool',
    'Other tools that the provider runs',
    'Items of tools that the provider ran',
    'Items by reference',
  ].map((feature) => ({ feature, carried: nowhere })),
]
