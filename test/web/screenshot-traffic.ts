// Sandbox traffic for the pictures of the pages: a team with projects, keys, limits and a top-up, and calls of every kind
// in both dialects. Every figure on the pictures comes from these calls.

import type { Gateway } from '../parts/gateway.ts'

const callsMax = 90

export interface Traffic {
  /** One that may call everything. */
  readonly key: string
  /** The id of a request that failed over. */
  readonly flaky: string
}

const questions = [
  'summarise the minutes of the harbour board',
  'write a haiku about a toll gate',
  'which of these invoices is overdue?',
  'translate: the bridge is closed tonight',
  'name three rivers that flow north',
]

const clients = ['openai-node/7.53.0', 'claude-cli/2.1.4', 'langchainjs-openai/1.6.0', 'curl/8.14.1']
const models = [
  'echo',
  'echo',
  'cache',
  'think',
  'tools',
  'flaky',
  'echo',
  'throttled',
  'cache',
  'down',
  'think',
  'echo',
]

/** `onProgress` is told which share of the calls was made, 0 to 1. */
export async function makeTraffic(
  { url, key: firstKey }: Gateway,
  token: string,
  onProgress: (share: number) => void,
): Promise<Traffic> {
  const manage = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`)
    return (await response.json()) as { id: string; secret: string; data: readonly { id: string }[] }
  }
  const { data } = await manage('GET', '/api/workspaces')
  const workspace = data[0]?.id ?? ''
  const web = await manage('POST', `/api/workspaces/${workspace}/projects`, { name: 'web', models: ['sandbox/*'] })
  const batch = await manage('POST', `/api/workspaces/${workspace}/projects`, { name: 'batch' })
  const site = await manage('POST', `/api/projects/${web.id}/keys`, { name: 'website' })
  const ci = await manage('POST', `/api/projects/${web.id}/keys`, { name: 'ci', expires_at: '2027-06-30T00:00:00Z' })
  const nightly = await manage('POST', `/api/projects/${batch.id}/keys`, { name: 'nightly' })
  await manage('PUT', `/api/keys/${ci.id}/limits`, { requests_per_minute: 120, spend_per_day: '1.50' })
  await manage('PUT', `/api/projects/${web.id}/limits`, { requests_per_minute: 600, spend_per_month: '40.00' })
  await manage('POST', `/api/workspaces/${workspace}/topups`, { amount: '25.00', reference: 'invoice 2026-117' })

  let flaky = ''
  const secrets = [site.secret, ci.secret, nightly.secret, firstKey]
  for (let turn = 0; turn < callsMax; turn++) {
    // Few in the night, many by day.
    onProgress((turn / callsMax) ** 0.6)
    const model = models[turn % models.length] ?? 'echo'
    const { id, attempts } = await call(url, {
      secret: secrets[turn % secrets.length] ?? firstKey,
      model: `sandbox/${model}`,
      question: questions[turn % questions.length] ?? '',
      client: clients[turn % clients.length] ?? '',
      isMessages: turn % 3 === 1,
    })
    if (attempts > 1) flaky = id
  }
  onProgress(1)
  return { key: firstKey, flaky }
}

interface Wish {
  readonly secret: string
  readonly model: string
  readonly question: string
  readonly client: string
  readonly isMessages: boolean
}

async function call(url: string, { secret, model, question, client, isMessages }: Wish) {
  const messages = [
    { role: 'user', content: 'You work for a harbour. Be brief.' },
    { role: 'assistant', content: 'Understood.' },
    { role: 'user', content: question },
  ]
  const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
  const tool = isMessages
    ? { name: 'find_ship', input_schema: schema }
    : { type: 'function', function: { name: 'find_ship', parameters: schema } }
  const tools = model === 'sandbox/tools' && { tools: [tool] }
  const cap = isMessages ? { max_tokens: 400 } : { max_completion_tokens: 400 }
  const response = await fetch(`${url}/v1/${isMessages ? 'messages' : 'chat/completions'}`, {
    method: 'POST',
    headers: {
      ...(isMessages
        ? { 'x-api-key': secret, 'anthropic-version': '2023-06-01' }
        : { authorization: `Bearer ${secret}` }),
      'content-type': 'application/json',
      'user-agent': client,
    },
    body: JSON.stringify({ model, stream: true, messages, ...cap, ...tools }),
  })
  await response.text()
  return {
    id: response.headers.get('x-request-id') ?? '',
    attempts: Number(response.headers.get('x-tollgate-attempts') ?? 0),
  }
}
