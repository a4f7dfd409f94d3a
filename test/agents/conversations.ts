// Ten turns of coding agents, in the shape in which each sends them: what it repeats, how it names its session, where it
// sets cache marks.

export interface AgentRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readonly<Record<string, unknown>>
}

export interface Agent {
  readonly name: string
  readonly path: string
  /** The request of a turn, from 0. */
  request(model: string, session: string, turn: number): AgentRequest
}

export const turnsPerSession = 10

const words = (seed: string, count: number) => Array.from({ length: count }, (_, at) => `${seed}${at % 97}`).join(' ')
const prompt = (agent: string) => `You are ${agent}, a coding agent. ${words('rule', 1200)}`
const toolNames = ['read', 'list', 'search', 'edit', 'write', 'shell', 'plan', 'fetch']
const schema = {
  type: 'object',
  properties: { path: { type: 'string' }, line: { type: 'integer' } },
  required: ['path'],
}
const chatTools = toolNames.map((name) => ({
  type: 'function',
  function: { name, description: words(name, 60), parameters: schema },
}))

const argumentsOf = (turn: number) => `{"path": "src/file-${turn}.ts", "line": ${turn}}`
const resultOf = (turn: number) => words(`line${turn}-`, 150)

/** Each turn answers one call of the model; every third makes two at once. */
function callsOf(session: string, turn: number): string[] {
  const first = `call_${session}_${turn}`
  return turn % 3 === 2 ? [first, `${first}b`] : [first]
}

function chatHistory(agent: string, session: string, turns: number, task: unknown): object[] {
  const messages: object[] = [
    { role: 'system', content: prompt(agent) },
    { role: 'user', content: task },
  ]
  for (let turn = 0; turn < turns; turn++) {
    const calls = callsOf(session, turn)
    messages.push({
      role: 'assistant',
      content: turn % 2 === 0 ? `Step ${turn}.` : null,
      tool_calls: calls.map((id) => ({
        id,
        type: 'function',
        function: { name: 'read', arguments: argumentsOf(turn) },
      })),
    })
    for (const id of calls) messages.push({ role: 'tool', tool_call_id: id, content: resultOf(turn) })
  }
  return messages
}

function chatAgent(
  name: string,
  headers: (session: string) => Record<string, string>,
  more: (session: string) => object,
  parts = false,
): Agent {
  return {
    name,
    path: '/v1/chat/completions',
    request(model, session, turn) {
      const task = `Fix ${session}. ${words('issue', 200)}`
      const messages = chatHistory(name, session, turn, parts ? [{ type: 'text', text: task }] : task)
      return {
        headers: headers(session),
        body: {
          model,
          messages,
          tools: chatTools,
          stream: true,
          stream_options: { include_usage: true },
          ...more(session),
        },
      }
    },
  }
}

const messagesTools = toolNames.map((name) => ({ name, description: words(name, 60), input_schema: schema }))
const mark = { cache_control: { type: 'ephemeral' } }

/** Sets its own marks; its first block of system text changes with every call. */
const claudeCode: Agent = {
  name: 'claude',
  path: '/v1/messages',
  request(model, session, turn) {
    const messages: { role: string; content: Record<string, unknown>[] }[] = [
      { role: 'user', content: [{ type: 'text', text: `Fix ${session}. ${words('issue', 200)}` }] },
    ]
    for (let at = 0; at < turn; at++) {
      const calls = callsOf(session, at)
      const text = at % 2 === 0 ? [{ type: 'text', text: `Step ${at}.` }] : []
      const input = { path: `src/file-${at}.ts`, line: at }
      messages.push({
        role: 'assistant',
        content: [...text, ...calls.map((id) => ({ type: 'tool_use', id, name: 'read', input }))],
      })
      messages.push({
        role: 'user',
        content: calls.map((id) => ({ type: 'tool_result', tool_use_id: id, content: resultOf(at) })),
      })
    }
    for (const message of messages.filter(({ role }) => role === 'user').slice(-2)) {
      Object.assign(message.content.at(-1) as object, mark)
    }
    const system = [
      { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.325; cch=${session}${turn};` },
      { type: 'text', text: prompt('claude'), ...mark },
    ]
    const userId = JSON.stringify({ device_id: 'd', account_uuid: '', session_id: session })
    return {
      headers: { 'anthropic-version': '2023-06-01', 'x-claude-code-session-id': session },
      body: {
        model,
        max_tokens: 4000,
        system,
        tools: messagesTools,
        messages,
        metadata: { user_id: userId },
        stream: true,
      },
    }
  },
}

export const agents: readonly Agent[] = [
  claudeCode,
  chatAgent(
    'opencode',
    (id) => ({ 'x-session-affinity': id, 'x-session-id': id }),
    // With `setCacheKey`, its version 1.18 sends this spelling.
    (id) => ({ max_tokens: 4000, promptCacheKey: id }),
  ),
  chatAgent(
    'cline',
    () => ({}),
    () => ({ temperature: 0, max_completion_tokens: 4000 }),
    true,
  ),
  chatAgent(
    'qwen-code',
    () => ({}),
    () => ({ max_tokens: 4000, temperature: 0.2 }),
    true,
  ),
]
