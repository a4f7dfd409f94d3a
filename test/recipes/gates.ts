// Gateways that look the same to a client: one serves the sandbox itself, the others reach that one over HTTP as a
// provider of a single dialect. So every client gets the same answers over the byte lane and through translation.

import { type DialectName, dialectOfPath } from '../conformance/cells.ts'
import { messageItem, responsesBytes } from '../conformance/replies/responses-bytes.ts'
import { type Gateway, startGateway } from '../parts/gateway.ts'
import { chatWords, geminiWords, messagesWords, type Words } from '../parts/upstream-words.ts'

export const gateNames = ['sandbox', 'openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'] as const
export type GateName = (typeof gateNames)[number]

export interface UpstreamCall {
  readonly path: string
  /** The body as the provider parses it. */
  readonly body: unknown
}

export interface Gate {
  readonly name: GateName
  readonly url: string
  readonly key: string
  /** The calls that reached the provider; unknown for the sandbox inside the gateway. */
  readonly calls: UpstreamCall[]
}

export interface Gates {
  gate(name: GateName): Gate
  stop(): Promise<void>
}

/** The models that recipes name; the rest of the sandbox is not needed behind a provider. */
const models = ['echo', 'tools', 'think', 'throttled', 'breaks-off']

export async function startGates(): Promise<Gates> {
  const sandbox = await startGateway()
  const behind = await Promise.all(gateNames.slice(1).map((name) => startBehind(name, sandbox)))
  const gates: readonly Gate[] = [{ ...sandbox, name: 'sandbox', calls: [] }, ...behind]
  return {
    gate: (name) => gates.find((gate) => gate.name === name) as Gate,
    async stop() {
      await Promise.all(behind.map((gate) => gate.stop()))
      await sandbox.stop()
    },
  }
}

async function startBehind(name: GateName, sandbox: Gateway) {
  const calls: UpstreamCall[] = []
  const provider = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const body = await request.text()
      const parsed = JSON.parse(body) as { model?: string }
      calls.push({ path: pathname, body: parsed })
      // Gemini's API has the model in the address.
      if (`${parsed.model} ${decodeURIComponent(pathname)}`.includes('sandbox/breaks-off')) return fallSilent(pathname)
      return fetch(`${sandbox.url}${pathname}${search}`, { method: 'POST', headers: request.headers, body })
    },
  })
  const base = provider.url.origin + (basePaths[name] ?? '')
  const gateway = await startGateway({ config: configOf(name, base, sandbox.key), env: { TOLLGATE_SANDBOX: 'off' } })
  return {
    name,
    url: gateway.url,
    key: gateway.key,
    calls,
    async stop() {
      await provider.stop(true)
      await gateway.stop()
    },
  }
}

const basePaths: Partial<Record<GateName, string>> = {
  'openai-chat': '/v1',
  'openai-responses': '/v1',
  gemini: '/v1beta',
}

/**
 * Half an answer and then nothing, until the gateway loses patience: a break that came in the same packet as the words
 * would be a failed attempt, not an interrupted answer.
 */
function fallSilent(path: string): Response {
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(halves[dialectOfPath(path)]))
    },
  })
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
}

const halfOf = ({ opening, says }: Words) => opening + says('half')
/** Clients of Responses check each event, so that it needs all members. */
const [halfResponse = ''] = responsesBytes({ items: [messageItem(0, 'half')] }).stream.split(/(?=event: \S+text\.done)/)
const halves: Readonly<Record<DialectName, string>> = {
  chat: halfOf(chatWords),
  messages: halfOf(messagesWords),
  responses: halfResponse,
  gemini: halfOf(geminiWords),
}

/** The sandbox's own ids and prices, so that a recipe needs no other words and every cost is the same. */
function configOf(dialect: GateName, baseUrl: string, key: string): string {
  const entries = models.map((model) => ({
    id: `sandbox/${model}`,
    price: { input: '1.00', output: '2.00' },
    max_output_tokens: 64_000,
    routes: [{ provider: 'upstream', model: `sandbox/${model}`, timeouts: { idle_ms: 5_000 } }],
  }))
  const providers = [{ id: 'upstream', dialect, base_url: baseUrl, api_key: key }]
  return JSON.stringify({ providers, models: entries })
}
