// Tool calls as no model makes them: names, numbers and arguments that reach for prototypes, for memory, or for the next
// call. What a model wrote is data, and nothing is evaluated.

import { chunkedHead, respond, type Trick, type Turn } from './turn.ts'

interface ToolCall {
  /** As JSON texts. */
  readonly index?: string
  readonly id?: string
  readonly name?: string
  readonly arguments?: string
}

const quoted = (text: string): string => JSON.stringify(text)

function chatStream(calls: readonly ToolCall[]): string {
  const record = (delta: string, finish = 'null'): string =>
    `data: {"id":"c","object":"chat.completion.chunk","model":"up","choices":[{"index":0,"delta":${delta},"finish_reason":${finish}}]}\n\n`
  const records = calls.map(({ index = '0', id = '"t1"', name = '"look"', arguments: json = '{}' }) =>
    record(
      `{"tool_calls":[{"index":${index},"id":${id},"type":"function","function":{"name":${name},"arguments":${quoted(json)}}}]}`,
    ),
  )
  return `${records.join('')}${record('{}', '"tool_calls"')}data: {"model":"up","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}\n\ndata: [DONE]\n\n`
}

function messagesStream(calls: readonly ToolCall[]): string {
  const event = (type: string, members: string): string => `event: ${type}\ndata: {"type":"${type}"${members}}\n\n`
  const records = calls.map(({ index = '0', id = '"t1"', name = '"look"', arguments: json = '{}' }) => {
    const delta = `{"type":"input_json_delta","partial_json":${quoted(json)}}`
    return (
      event(
        'content_block_start',
        `,"index":${index},"content_block":{"type":"tool_use","id":${id},"name":${name},"input":{}}`,
      ) +
      event('content_block_delta', `,"index":${index},"delta":${delta}`) +
      event('content_block_stop', `,"index":${index}`)
    )
  })
  const usage = '"usage":{"input_tokens":3,"output_tokens":2}'
  return (
    event(
      'message_start',
      `,"message":{"id":"m","type":"message","role":"assistant","model":"up","content":[],${usage}}`,
    ) +
    records.join('') +
    event('message_delta', `,"delta":{"stop_reason":"tool_use"},${usage}`) +
    event('message_stop', '')
  )
}

function whole(dialect: 'chat' | 'messages', calls: readonly ToolCall[]): string {
  if (dialect === 'chat') {
    const list = calls.map(
      ({ id = '"t1"', name = '"look"', arguments: json = '{}' }) =>
        `{"id":${id},"type":"function","function":{"name":${name},"arguments":${quoted(json)}}}`,
    )
    return `{"id":"c","object":"chat.completion","model":"up","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[${list}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
  }
  const list = calls.map(
    ({ id = '"t1"', name = '"look"', arguments: json = '{}' }) =>
      `{"type":"tool_use","id":${id},"name":${name},"input":${json}}`,
  )
  return `{"id":"m","type":"message","role":"assistant","model":"up","content":[${list}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":2}}`
}

async function tell(turn: Turn, calls: readonly ToolCall[]): Promise<void> {
  const isChat = turn.call.path.endsWith('/chat/completions')
  if (!turn.streams) return respond(turn, whole(isChat ? 'chat' : 'messages', calls))
  await chunkedHead(turn)
  await turn.reply.chunk(isChat ? chatStream(calls) : messagesStream(calls))
  await turn.reply.finish()
}

const trick = (name: string, calls: readonly ToolCall[], outcome: Trick['outcome'] = 'answered'): Trick => ({
  name: `a tool call with ${name}`,
  outcome,
  play: (turn) => tell(turn, calls),
})

const nested = `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`

export const toolTricks: readonly Trick[] = [
  trick('__proto__ in its arguments', [{ arguments: '{"__proto__":{"polluted":1}}' }]),
  trick('constructor.prototype in its arguments', [{ arguments: '{"constructor":{"prototype":{"polluted":1}}}' }]),
  trick('a name of __proto__', [{ name: '"__proto__"' }]),
  trick('an id of __proto__', [{ id: '"__proto__"' }]),
  trick('a number of 1e9', [{ index: '1000000000' }]),
  trick('a number of 2³²−2', [{ index: '4294967294' }]),
  trick('a number of −1', [{ index: '-1' }]),
  trick('a number of 1e308', [{ index: '1e308' }]),
  trick('a number that is text', [{ index: '"length"' }], 'legal'),
  trick('arguments 50,000 levels deep', [{ arguments: nested }], 'legal'),
  trick('a name with line ends', [{ name: '"a\\r\\nset-cookie: canary-cookie"' }]),
  trick('a name of 200 kB', [{ name: `"${'n'.repeat(200_000)}"` }], 'legal'),
  trick(
    'the id of the one before',
    ['0', '1', '2'].map((index) => ({ index })),
    'legal',
  ),
  trick(
    'the number of the one before',
    ['"a"', '"b"', '"c"'].map((id) => ({ id })),
    'legal',
  ),
  trick(
    'two thousand others beside it',
    Array.from({ length: 2000 }, (_, at) => ({ index: String(at), id: `"t${at}"` })),
  ),
  trick('arguments that are no JSON', [{ arguments: '{"a":' }], 'legal'),
]
