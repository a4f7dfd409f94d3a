// Ways in which Messages endpoints are broken, one at a time, and which checks must say so.

import { type BrokenThing, inAll, inReplies, inStreams, refusing } from './damaging-proxy.ts'

export const brokenMessages: readonly BrokenThing[] = [
  {
    dialect: 'messages',
    what: 'a list that cannot be paged',
    damage: inReplies('"has_more"', '"more"'),
    fails: { 'models list': 'has_more' },
  },
  {
    dialect: 'messages',
    what: 'no event names',
    damage: inStreams(/event: \w+\n/g, ''),
    fails: {
      'text, streamed': 'no text',
      'stop reason': 'says nothing',
      usage: 'the stream has no usage',
      'tool call, streamed': 'demanded',
      'tool round trip': 'no text comes back',
      'stream grammar': 'event-name',
    },
  },
  {
    dialect: 'messages',
    what: 'no message_stop',
    damage: inStreams(/event: message_stop\n[^\n]*\n\n/g, ''),
    fails: { 'stream grammar': 'stop-last' },
  },
  {
    dialect: 'messages',
    what: 'blocks that are numbered from 1',
    damage: inStreams(/"index":(\d)/g, '"index":1$1'),
    fails: { 'stream grammar': 'block-index' },
  },
  {
    dialect: 'messages',
    what: 'an end without usage',
    damage: inStreams(/("message_delta".*),"usage":\{.*\}\}/g, '$1}'),
    fails: { 'stream grammar': 'usage-keys' },
  },
  {
    dialect: 'messages',
    what: 'a beginning without input tokens',
    damage: inStreams(/("message_start".*)"input_tokens":\d+/g, '$1"input_tokens":0'),
    fails: { 'stream grammar': 'start-usage' },
  },
  {
    dialect: 'messages',
    what: 'blocks that never end',
    damage: inStreams(/event: content_block_stop\n[^\n]*\n\n/g, ''),
    fails: { 'stream grammar': 'one-open' },
  },
  {
    dialect: 'messages',
    what: 'OpenAI’s word for the end',
    damage: inAll('"end_turn"', '"stop"'),
    fails: { text: 'stop-reason', 'stop reason': 'not end_turn', 'stream grammar': 'stop-reason' },
  },
  {
    dialect: 'messages',
    what: 'input as text',
    damage: inReplies(/"input":\{[^}]*\}/g, '"input":"{}"'),
    // What came back is sent back.
    fails: { 'tool call': 'tool-input', 'parallel tools': 'no JSON object', 'tool round trip': 'refused' },
  },
  {
    dialect: 'messages',
    what: 'calls that end as if there were none',
    damage: inAll('"stop_reason":"tool_use"', '"stop_reason":"end_turn"'),
    fails: {
      'tool call': 'stop-tools',
      'tool call, streamed': 'it ends with end_turn, not tool_use',
      'stream grammar': 'stop-tools',
    },
  },
  {
    dialect: 'messages',
    what: 'tool results are refused',
    damage: refusing('"tool_result"'),
    fails: { 'tool round trip': 'the results are refused' },
  },
  {
    dialect: 'messages',
    what: 'errors in the other dialect’s shape',
    damage: ({ status, text }) =>
      status === 200
        ? undefined
        : new Response(text.replace('"type":"error",', ''), {
            status,
            headers: { 'content-type': 'application/json' },
          }),
    fails: { 'error 400': '`type` is not "error"', 'error 401': '`type`', 'error 404': '`type`' },
  },
]
