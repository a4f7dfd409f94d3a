// The sandbox as an upstream: takes the same request a provider would get over the network and answers with the same
// kind of Response. Dispatch only; what is said is in behaviours, how it is written in the two wires.

import type { Clock } from '../../kernel/clock.ts'
import type { Transport } from '../provider.ts'
import { createBehaviours } from './behaviours.ts'
import { chatWire } from './chat/chat-wire.ts'
import { composeReply } from './compose-reply.ts'
import { isObject, type JsonObject } from './json-value.ts'
import { checkCountRequest } from './messages/check-request.ts'
import { messagesWire } from './messages/messages-wire.ts'
import { type Prompt, promptTokens } from './prompt.ts'
import { Refusal } from './refusal.ts'
import type { Reply } from './reply.ts'
import { type Delay, streamBody, timerDelay } from './stream-body.ts'
import type { Stamp, Wire } from './wire.ts'

/** What every sandbox model can read at most, as its catalog entries say. */
const contextTokensMax = 128_000

export interface SandboxParts {
  readonly clock: Clock
  /** How the slow model waits; tests need not. */
  readonly delay?: Delay
}

export function createSandboxTransport({ clock, delay = timerDelay }: SandboxParts): Transport {
  const behaviours = createBehaviours()

  function readPrompt(wire: Wire, body: JsonObject): Prompt | Refusal {
    const prompt = wire.readPrompt(body)
    if (!behaviours.has(prompt.model)) return new Refusal({ kind: 'unknown-model', model: prompt.model })
    const tokens = promptTokens(prompt)
    if (tokens > contextTokensMax) return new Refusal({ kind: 'prompt-too-long', tokens, tokensMax: contextTokensMax })
    return prompt
  }

  function generate(wire: Wire, body: JsonObject): { prompt: Prompt; reply: Reply } | Refusal {
    const prompt = wire.checkRequest(body) ?? readPrompt(wire, body)
    if (prompt instanceof Refusal) return prompt
    const draft = behaviours.get(prompt.model)?.(prompt)
    if (draft === undefined) return new Refusal({ kind: 'unknown-model', model: prompt.model })
    return draft instanceof Refusal ? draft : { prompt, reply: composeReply(prompt, draft) }
  }

  return async ({ path: target, body: bytes, signal }) => {
    signal.throwIfAborted()
    const path = target.split('?', 1)[0] ?? target
    const wire = path.startsWith('/v1/messages') ? messagesWire : chatWire
    const digest = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
    const requestId = `req_sandbox_${digest.slice(0, 24)}`
    const named = { [wire.requestIdHeader]: requestId }
    const json = { ...named, 'content-type': 'application/json' }

    function refuse(refusal: Refusal): Response {
      const { status, headers, body } = wire.renderRefusal(refusal, requestId)
      return new Response(body, { status, headers: { ...json, ...headers } })
    }

    const body = parseBody(bytes)
    if (body instanceof Refusal) return refuse(body)
    if (path === '/v1/messages/count_tokens') {
      const counted = checkCountRequest(body) ?? readPrompt(wire, body)
      if (counted instanceof Refusal) return refuse(counted)
      return new Response(JSON.stringify({ input_tokens: promptTokens(counted) }), { headers: json })
    }
    if (path !== '/chat/completions' && path !== '/v1/messages') {
      return refuse(new Refusal({ kind: 'unknown-path', path }))
    }
    const generated = generate(wire, body)
    if (generated instanceof Refusal) return refuse(generated)

    const { prompt, reply } = generated
    const stamp: Stamp = {
      digest,
      createdSeconds: Math.floor(clock.now() / 1000),
      model: prompt.model,
      wantsStreamUsage: prompt.wantsStreamUsage,
    }
    if (prompt.stream) {
      return new Response(streamBody(wire.streamReply(reply, stamp), { delay, signal }), {
        headers: { ...named, 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
      })
    }
    await waitThrough(reply, delay, signal)
    return new Response(wholeBody(wire, reply, stamp), { headers: json })
  }
}

function parseBody(bytes: Uint8Array<ArrayBuffer>): JsonObject | Refusal {
  try {
    const body: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (isObject(body)) return body
  } catch {
    // Not UTF-8 or not JSON: refused below like any other body that is no object.
  }
  return new Refusal({ kind: 'unreadable' })
}

async function waitThrough(reply: Reply, delay: Delay, signal: AbortSignal): Promise<void> {
  const ms = reply.steps.reduce((sum, step) => sum + (step.kind === 'wait' ? step.ms : 0), 0)
  if (ms > 0) await delay(ms, signal)
  signal.throwIfAborted()
}

function wholeBody(wire: Wire, reply: Reply, stamp: Stamp): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(wire.renderReply(reply, stamp))
  return reply.breaksOff ? bytes.slice(0, Math.ceil(bytes.length / 2)) : bytes
}
