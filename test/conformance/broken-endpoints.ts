// Endpoints that are good but for one thing: a proxy in front of the gateway that damages what passes, the ways in which
// endpoints are broken, and which checks must report each.

export interface Passing {
  /** The request's path and body. */
  readonly path: string
  readonly asked: string
  readonly status: number
  readonly text: string
}

/** The replacement that the client gets; undefined = unchanged. */
export type Damage = (passing: Passing) => Response | string | Uint8Array<ArrayBuffer> | undefined

export interface DamagingProxy {
  readonly url: string
  damage(damage: Damage): void
  stop(): void
}

export function startProxy(gatewayUrl: string): DamagingProxy {
  let damage: Damage = () => undefined
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const asked = await request.text()
      const headers = new Headers(request.headers)
      headers.delete('host')
      const init = { method: request.method, headers, ...(asked === '' ? {} : { body: asked }) }
      const response = await fetch(gatewayUrl + pathname, init)
      const text = await response.text()
      const damaged = damage({ path: pathname, asked, status: response.status, text })
      if (damaged instanceof Response) return damaged
      const type = response.headers.get('content-type') ?? ''
      return new Response(damaged ?? text, { status: response.status, headers: { 'content-type': type } })
    },
  })
  return {
    url: server.url.origin,
    damage(next) {
      damage = next
    },
    stop: () => void server.stop(true),
  }
}

const isStream = ({ text }: Passing): boolean => /^(?:data|event):/.test(text)

/** Replaces in streams, in whole replies, or in both. */
const inStreams =
  (from: string | RegExp, to: string): Damage =>
  (passing) =>
    isStream(passing) ? passing.text.replaceAll(from, to) : undefined
const inReplies =
  (from: string | RegExp, to: string): Damage =>
  (passing) =>
    passing.status === 200 && !isStream(passing) ? passing.text.replaceAll(from, to) : undefined
const inAll =
  (from: string | RegExp, to: string): Damage =>
  ({ status, text }) =>
    status === 200 ? text.replaceAll(from, to) : undefined
/** Errors of this status get another body, status or type. */
const errors =
  (status: number, instead: { readonly status?: number; readonly body?: string; readonly type?: string }): Damage =>
  (passing) => {
    if (passing.status !== status) return undefined
    const headers = { 'content-type': instead.type ?? 'application/json' }
    return new Response(instead.body ?? passing.text, { status: instead.status ?? status, headers })
  }
/** Requests whose body says this are refused. */
const refusing =
  (said: string): Damage =>
  ({ asked }) =>
    asked.includes(said)
      ? Response.json({ type: 'error', error: { type: 't', message: 'no', param: null, code: null } }, { status: 400 })
      : undefined
/** Characters as one byte each, which is no UTF-8. */
const inLatin1: Damage = ({ status, text }) =>
  status === 200 ? new Uint8Array(Buffer.from(text.replaceAll(/[^\0-\xff]/g, '?'), 'latin1')) : undefined

/** The fault, how it is made, and the checks that fail with a word of the reason that each gives. */
export type BrokenRow = readonly [what: string, damage: Damage, fails: Readonly<Record<string, string>>]

export const brokenChat: readonly BrokenRow[] = [
  ['the list of models is no list', inReplies('"object":"list",', ''), { 'models list': '`object` is not "list"' }],
  ['models without an owner', inReplies('"owned_by"', '"owner"'), { 'models list': 'data[0]' }],
  [
    'replies are half JSON',
    ({ text, asked }) => (text.includes('"chat.completion"') && asked ? text.slice(0, -9) : undefined),
    {
      text: 'no JSON',
      'stop reason': 'no JSON',
      usage: 'no JSON',
      'tool call': 'no JSON',
      'parallel tools': 'no JSON',
    },
  ],
  [
    'streams are sent as JSON',
    ({ text }) =>
      text.startsWith('data:') ? new Response(text, { headers: { 'content-type': 'application/json' } }) : undefined,
    {
      'text, streamed': 'content type',
      'stop reason': 'content type',
      usage: 'content type',
      'tool call, streamed': 'content type',
      'tool round trip': 'content type',
      'parallel tools': 'content type',
    },
  ],
  ['no [DONE]', inStreams('data: [DONE]\n\n', ''), { 'stream grammar': 'done-last' }],
  ['no role', inStreams('"role":"assistant",', ''), { 'stream grammar': 'role-first' }],
  [
    'signs of life as data',
    inStreams('data: [DONE]', 'data: {"type":"ping"}\n\ndata: [DONE]'),
    { 'stream grammar': 'choices' },
  ],
  [
    'a cap that is not reported',
    inAll('"finish_reason":"length"', '"finish_reason":"stop"'),
    { 'stop reason': 'not length' },
  ],
  [
    'streams without usage',
    inStreams(/data: \{[^\n]*"prompt_tokens"[^\n]*\n\n/g, ''),
    { usage: 'the stream has no usage', 'stream grammar': 'usage-last' },
  ],
  [
    'a total that is no sum',
    inAll(/"total_tokens":\d+/g, '"total_tokens":1'),
    { text: 'usage-sum', 'tool call': 'usage-sum', 'stream grammar': 'usage-sum' },
  ],
  [
    'another count in streams',
    inStreams(
      /"prompt_tokens":\d+,"completion_tokens":(\d+),"total_tokens":\d+/g,
      '"prompt_tokens":0,"completion_tokens":$1,"total_tokens":$1',
    ),
    { usage: 'counts no input tokens' },
  ],
  [
    'tools are ignored',
    ({ text }) => text.replaceAll('"tool_calls"', '"ignored"'),
    { 'tool call': 'demanded', 'tool call, streamed': 'demanded', 'stream grammar': 'finish' },
  ],
  [
    'calls without ids in streams',
    inStreams(/"id":"call_[^"]*"/g, '"id":""'),
    { 'tool call, streamed': 'no id', 'parallel tools': 'no id', 'stream grammar': 'tool-first' },
  ],
  ['half of the arguments', inReplies('\\"}"', '"'), { 'tool call': 'no JSON', 'parallel tools': 'no JSON' }],
  [
    'calls that are numbered from 1',
    inStreams(/"tool_calls":\[\{"index":(\d)/g, '"tool_calls":[{"index":1$1'),
    { 'stream grammar': 'tool-index' },
  ],
  [
    'one id for all calls',
    inReplies(/"id":"call_[^"]*"/g, '"id":"call_1"'),
    { 'parallel tools': 'two calls have one id' },
  ],
  ['tool results are refused', refusing('"role":"tool"'), { 'tool round trip': 'the results are refused' }],
  ['text in another encoding', inLatin1, { 'UTF-8': 'no UTF-8' }],
  ['characters replaced on the way, in streams', inStreams('🎉', '\ufffd\ufffd'), { 'UTF-8': 'replaced (streamed)' }],
  [
    'bad requests are unprocessable',
    errors(400, { status: 422, body: '{"detail":"Not Found"}' }),
    { 'error 400': 'a 422, not a 400' },
  ],
  ['a wrong key is forbidden', errors(401, { status: 403 }), { 'error 401': 'a 403, not a 401' }],
  [
    'an unknown model is a page',
    errors(404, { body: '<html>', type: 'text/html' }),
    { 'error 404': 'no `error` object' },
  ],
  ['an unknown model is a success', errors(404, { status: 200 }), { 'error 404': 'answered with 200' }],
]

export const brokenMessages: readonly BrokenRow[] = [
  ['a list that cannot be paged', inReplies('"has_more"', '"more"'), { 'models list': 'has_more' }],
  [
    'no event names',
    inStreams(/event: \w+\n/g, ''),
    {
      'text, streamed': 'no text',
      'stop reason': 'says nothing',
      usage: 'the stream has no usage',
      'tool call, streamed': 'demanded',
      'tool round trip': 'no text comes back',
      'stream grammar': 'event-name',
    },
  ],
  ['no message_stop', inStreams(/event: message_stop\n[^\n]*\n\n/g, ''), { 'stream grammar': 'stop-last' }],
  ['blocks that are numbered from 1', inStreams(/"index":(\d)/g, '"index":1$1'), { 'stream grammar': 'block-index' }],
  [
    'an end without usage',
    inStreams(/("message_delta".*),"usage":\{.*\}\}/g, '$1}'),
    { 'stream grammar': 'usage-keys' },
  ],
  [
    'a beginning without input tokens',
    inStreams(/("message_start".*)"input_tokens":\d+/g, '$1"input_tokens":0'),
    { 'stream grammar': 'start-usage' },
  ],
  ['blocks that never end', inStreams(/event: content_block_stop\n[^\n]*\n\n/g, ''), { 'stream grammar': 'one-open' }],
  [
    'OpenAI’s word for the end',
    inAll('"end_turn"', '"stop"'),
    { text: 'stop-reason', 'stop reason': 'not end_turn', 'stream grammar': 'stop-reason' },
  ],
  [
    'input as text',
    inReplies(/"input":\{[^}]*\}/g, '"input":"{}"'),
    { 'tool call': 'tool-input', 'parallel tools': 'no JSON object' },
  ],
  [
    'calls that end as if there were none',
    inAll('"stop_reason":"tool_use"', '"stop_reason":"end_turn"'),
    {
      'tool call': 'stop-tools',
      'tool call, streamed': 'it ends with end_turn, not tool_use',
      'stream grammar': 'stop-tools',
    },
  ],
  ['tool results are refused', refusing('"tool_result"'), { 'tool round trip': 'the results are refused' }],
  [
    'errors in the other dialect’s shape',
    ({ status, text }) =>
      status === 200
        ? undefined
        : new Response(text.replace('"type":"error",', ''), {
            status,
            headers: { 'content-type': 'application/json' },
          }),
    { 'error 400': '`type` is not "error"', 'error 401': '`type`', 'error 404': '`type`' },
  ],
]
