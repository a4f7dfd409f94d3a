// The users of the gateway in a soak: workspaces with and without balance, limits and their own provider keys, created
// through the management API as an operator would.

import { adminHeaders, callManagement } from '../parts/manage.ts'

export interface Manager {
  // biome-ignore lint/suspicious/noExplicitAny: answers of every kind.
  call(method: string, path: string, body?: unknown): Promise<any>
  /** The page of metrics; a name with its labels gives a number. */
  metrics(): Promise<ReadonlyMap<string, number>>
}

export function createManager(url: string, dataFolder: string): Manager {
  // So that no connection of ours is counted as the gateway's.
  const headers = { ...adminHeaders(dataFolder), connection: 'close' }
  const ask = (...call: [method: string, path: string, body?: unknown]) => callManagement(url, headers, call)
  return {
    call: async (method, path, body) => JSON.parse(await ask(method, path, body)),
    async metrics() {
      const page = await ask('GET', '/metrics')
      return new Map([...page.matchAll(/^([a-z_]+(?:\{.*\})?) (\S+)$/gm)].map(([, name = '', n]) => [name, Number(n)]))
    },
  }
}

export interface Tenants {
  /** Each as often as it is to be used. */
  readonly keys: readonly string[]
  /** Puts a little into the wallet that is always about to be empty. */
  feedThePoor(): Promise<void>
}

/** Costs are below $0.002 a call, so a day of 70 calls a second stays below $10,000. */
const plenty = '100000.00'

export async function addTenants({ call }: Manager, callsPerSecond: number): Promise<Tenants> {
  const workspace = async (name: string, amount: string): Promise<string> => {
    const { id } = await call('POST', '/api/workspaces', { name })
    await call('POST', `/api/workspaces/${id}/topups`, { amount })
    return id
  }
  const key = async (workspaceId: string, name: string, limits: object = {}): Promise<string> => {
    const project = await call('POST', `/api/workspaces/${workspaceId}/projects`, { name })
    return (await call('POST', `/api/projects/${project.id}/keys`, { name, limits })).secret
  }
  const rich = await workspace('rich', plenty)
  const poor = await workspace('poor', '0.01')
  const bounded = await workspace('bounded', plenty)
  await call('PUT', `/api/workspaces/${bounded}/limits`, { spend_per_day: '0.50' })
  const own = await workspace('with its own keys', plenty)
  for (const provider of ['chat-a', 'messages-a']) {
    await call('PUT', `/api/workspaces/${own}/credentials/${provider}`, { api_key: `own-key-for-${provider}` })
  }
  const rich1 = await key(rich, 'one')
  const rich2 = await key(rich, 'two')
  // Each of these gets a tenth of the traffic and may send half of that.
  const halfPerMinute = Math.max(1, Math.round(callsPerSecond * 60 * 0.05))
  const hurried = await key(rich, 'hurried', { requests_per_minute: halfPerMinute })
  const narrow = await key(rich, 'narrow', { concurrent_requests: 2 })
  const poorKey = await key(poor, 'one')
  const boundedKey = await key(bounded, 'one')
  const ownKey = await key(own, 'one')
  return {
    keys: [rich1, rich1, rich1, rich2, rich2, hurried, narrow, poorKey, boundedKey, ownKey],
    feedThePoor: async () => void (await call('POST', `/api/workspaces/${poor}/topups`, { amount: '0.02' })),
  }
}

/** Three models: one for each dialect, and one that both can serve, so that there is somewhere to fail over to. */
export function soakConfig(providerUrl: string): string {
  const timeouts = '{ connect_ms: 2000, first_event_ms: 3000, idle_ms: 3000, total_ms: 30000 }'
  const route = (provider: string, priority: number) =>
    `{ provider: ${provider}, model: up, priority: ${priority}, timeouts: ${timeouts} }`
  const model = (name: string, routes: readonly string[]) =>
    `  - { id: test/${name}, price: { input: "1.00", output: "2.00" }, max_output_tokens: 8000, default_max_tokens: 4096, routes: [${routes.join(', ')}] }`
  return `
providers:
  - { id: chat-a, dialect: openai-chat, base_url: "${providerUrl}/v1", api_key: upstream-secret }
  - { id: chat-b, dialect: openai-chat, base_url: "${providerUrl}/v1", api_key: upstream-secret }
  - { id: messages-a, dialect: anthropic-messages, base_url: "${providerUrl}", api_key: upstream-secret }
  - { id: messages-b, dialect: anthropic-messages, base_url: "${providerUrl}", api_key: upstream-secret }
own_keys: { fee_percent: 5 }
models:
${model('chat', [route('chat-a', 1), route('chat-b', 2)])}
${model('messages', [route('messages-a', 1), route('messages-b', 2)])}
${model('either', [route('chat-a', 1), route('messages-a', 1), route('chat-b', 2), route('messages-b', 2)])}
`
}
