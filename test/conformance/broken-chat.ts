// Ways in which Chat Completions endpoints are broken, one at a time, and which checks must say so.

import { type BrokenThing, errors, inAll, inLatin1, inReplies, inStreams, refusing } from './damaging-proxy.ts'

const foreignError = '{"detail":"Not Found"}'

export const brokenChat: readonly BrokenThing[] = [
  {
    dialect: 'chat',
    what: 'the list of models is no list',
    damage: inReplies('"object":"list",', ''),
    fails: { 'models list': '`object` is not "list"' },
  },
  {
    dialect: 'chat',
    what: 'models without an owner',
    damage: inReplies('"owned_by"', '"owner"'),
    fails: { 'models list': 'data[0]' },
  },
  {
    dialect: 'chat',
    what: 'replies are half JSON',
    damage: ({ text, asked }) => (text.includes('"chat.completion"') && asked ? text.slice(0, -9) : undefined),
    fails: {
      text: 'no JSON',
      'stop reason': 'no JSON',
      usage: 'no JSON',
      'tool call': 'no JSON',
      'parallel tools': 'no JSON',
    },
  },
  {
    dialect: 'chat',
    what: 'streams are sent as JSON',
    damage: ({ text }) =>
      text.startsWith('data:') ? new Response(text, { headers: { 'content-type': 'application/json' } }) : undefined,
    fails: {
      'text, streamed': 'content type',
      'stop reason': 'content type',
      usage: 'content type',
      'tool call, streamed': 'content type',
      'tool round trip': 'content type',
      'parallel tools': 'content type',
    },
  },
  {
    dialect: 'chat',
    what: 'no [DONE]',
    damage: inStreams('data: [DONE]\n\n', ''),
    fails: { 'stream grammar': 'done-last' },
  },
  {
    dialect: 'chat',
    what: 'no role',
    damage: inStreams('"role":"assistant",', ''),
    fails: { 'stream grammar': 'role-first' },
  },
  {
    dialect: 'chat',
    what: 'signs of life as data',
    damage: inStreams('data: [DONE]', 'data: {"type":"ping"}\n\ndata: [DONE]'),
    fails: { 'stream grammar': 'choices' },
  },
  {
    dialect: 'chat',
    what: 'a cap that is not told',
    damage: inAll('"finish_reason":"length"', '"finish_reason":"stop"'),
    fails: { 'stop reason': 'not length' },
  },
  {
    dialect: 'chat',
    what: 'streams without usage',
    damage: inStreams(/data: \{[^\n]*"prompt_tokens"[^\n]*\n\n/g, ''),
    fails: { usage: 'the stream has no usage', 'stream grammar': 'usage-last' },
  },
  {
    dialect: 'chat',
    what: 'a total that is no sum',
    damage: inAll(/"total_tokens":\d+/g, '"total_tokens":1'),
    fails: { text: 'usage-sum', 'tool call': 'usage-sum', 'stream grammar': 'usage-sum' },
  },
  {
    dialect: 'chat',
    what: 'another count in streams',
    damage: inStreams(
      /"prompt_tokens":\d+,"completion_tokens":(\d+),"total_tokens":\d+/g,
      '"prompt_tokens":0,"completion_tokens":$1,"total_tokens":$1',
    ),
    fails: { usage: 'counts no input tokens' },
  },
  {
    dialect: 'chat',
    what: 'tools are ignored',
    damage: ({ text }) => text.replaceAll('"tool_calls"', '"ignored"'),
    fails: {
      'tool call': 'demanded',
      'tool call, streamed': 'demanded',
      'stream grammar': 'finish',
    },
  },
  {
    dialect: 'chat',
    what: 'calls without ids in streams',
    damage: inStreams(/"id":"call_[^"]*"/g, '"id":""'),
    fails: { 'tool call, streamed': 'no id', 'parallel tools': 'no id', 'stream grammar': 'tool-first' },
  },
  {
    dialect: 'chat',
    what: 'half of the arguments',
    damage: inReplies('\\"}"', '"'),
    fails: { 'tool call': 'no JSON', 'parallel tools': 'no JSON' },
  },
  {
    dialect: 'chat',
    what: 'calls that are numbered from 1',
    damage: inStreams(/"tool_calls":\[\{"index":(\d)/g, '"tool_calls":[{"index":1$1'),
    fails: { 'stream grammar': 'tool-index' },
  },
  {
    dialect: 'chat',
    what: 'one id for all calls',
    damage: inReplies(/"id":"call_[^"]*"/g, '"id":"call_1"'),
    fails: { 'parallel tools': 'two calls have one id' },
  },
  {
    dialect: 'chat',
    what: 'tool results are refused',
    damage: refusing('"role":"tool"'),
    fails: { 'tool round trip': 'the results are refused' },
  },
  {
    dialect: 'chat',
    what: 'text in another encoding',
    damage: inLatin1,
    fails: { 'UTF-8': 'no UTF-8' },
  },
  {
    dialect: 'chat',
    what: 'characters replaced on the way, in streams',
    damage: inStreams('🎉', '\ufffd\ufffd'),
    fails: { 'UTF-8': 'replaced (streamed)' },
  },
  {
    dialect: 'chat',
    what: 'bad requests are unprocessable',
    damage: errors(400, { status: 422, body: foreignError }),
    fails: { 'error 400': 'a 422, not a 400' },
  },
  {
    dialect: 'chat',
    what: 'a wrong key is forbidden',
    damage: errors(401, { status: 403 }),
    fails: { 'error 401': 'a 403, not a 401' },
  },
  {
    dialect: 'chat',
    what: 'an unknown model is a page',
    damage: errors(404, { body: '<html>', type: 'text/html' }),
    fails: { 'error 404': 'no `error` object' },
  },
  {
    dialect: 'chat',
    what: 'an unknown model is a success',
    damage: errors(404, { status: 200 }),
    fails: { 'error 404': 'answered with 200' },
  },
]
