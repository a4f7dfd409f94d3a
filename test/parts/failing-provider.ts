// A provider whose every request fails a few times before it is answered, as a model's only route does during a hiccup.

import type { UpstreamCall, UpstreamHandler, UpstreamReply } from './upstream.ts'

/** Its behaviour instead of an answer. */
export const hiccups: Readonly<Record<string, (reply: UpstreamReply) => void | Promise<void>>> = {
  'a 529': (reply) => reply.json(529, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
  'a 503': (reply) => reply.json(503, { error: { message: 'busy' } }),
  'a 500': (reply) => reply.json(500, { error: { message: 'oh no' } }),
  'a reset connection': (reply) => reply.reset(),
}

/** Fails the first `times` calls of each request, which is known by its body, and then answers. */
export function failFirst(times: number, hiccup: string, answer: UpstreamHandler): UpstreamHandler {
  const calls = new Map<string, number>()
  return (call: UpstreamCall, reply: UpstreamReply) => {
    const body = new TextDecoder().decode(call.body)
    const before = calls.get(body) ?? 0
    calls.set(body, before + 1)
    return before < times ? hiccups[hiccup]?.(reply) : answer(call, reply)
  }
}
