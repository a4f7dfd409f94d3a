// A gateway with policies, and their endpoint. What a policy does depends on the prefix of the model: `hang/chat` is judged
// by an endpoint that never answers, and `open-hang/chat` by one whose policy fails open.

import { gzipSync } from 'node:zlib'
import type { TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../parts/upstream.ts'

export const policySecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
/** The endpoint blocks whatever contains it. */
export const forbidden = 'sk-live-4242'

const bomb = gzipSync('{"decision":"allow"}'.padEnd(16 * 1024 * 1024))

/** How an endpoint can fail to give a verdict. */
export const faults = {
  hang: () => {},
  stall: (reply: UpstreamReply) => reply.write('HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"decision"'),
  crash: (reply: UpstreamReply) => reply.reset(),
  error: (reply: UpstreamReply) => reply.json(500, { decision: 'allow' }),
  redirect: (reply: UpstreamReply) => reply.send(302, { location: '/judge' }, ''),
  // It says that it sends more than it does, or less.
  long: async (reply: UpstreamReply) => {
    await reply.write('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"decision":"allow"}')
    reply.cut()
  },
  short: (reply: UpstreamReply) => reply.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"decision":"allow"}'),
  huge: (reply: UpstreamReply) => reply.json(200, { decision: 'allow', message: 'x'.repeat(70_000) }),
  garbage: (reply: UpstreamReply) => reply.send(200, {}, 'allow'),
  html: (reply: UpstreamReply) => reply.send(200, { 'content-type': 'text/html' }, '<p>{"decision":"allow"}</p>'),
  list: (reply: UpstreamReply) => reply.json(200, [{ decision: 'allow' }]),
  // Without an end.
  endless: async (reply: UpstreamReply) => {
    await reply.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
    for (let i = 0; i < 64; i++) await reply.chunk('{"decision":"allow"}'.padEnd(4096))
  },
  // 16 MiB, which nobody asked for compressed.
  bomb: (reply: UpstreamReply) => reply.send(200, { 'content-encoding': 'gzip' }, bomb),
  undecided: (reply: UpstreamReply) => reply.json(200, { decision: 'ALLOW', allow: true }),
} as const satisfies Readonly<Record<string, (reply: UpstreamReply) => unknown>>

export type FaultName = keyof typeof faults

/** Blocks what contains the forbidden text, and tries to rewrite everything else. */
export function startPolicyEndpoint(): Upstream {
  return startUpstream(async (call, reply) => {
    const fault = faults[call.path.slice(1) as FaultName]
    if (fault) return void (await fault(reply))
    if (!Buffer.from(call.body).includes(forbidden)) {
      const rewritten = { conversation: null, answer: null, headers: { 'x-evil': '1' } }
      return await reply.json(200, { decision: 'allow', ...rewritten, data: rewritten })
    }
    await reply.json(200, { decision: 'block', code: 'live_key', message: 'It contains a live key.' })
  })
}

export const dialects = {
  chat: 'openai-chat',
  messages: 'anthropic-messages',
  responses: 'openai-responses',
  gemini: 'gemini',
}

/** `when`: of all policies. Every model is at the upstream, in each dialect. */
export function policyConfig(upstream: string, endpoint: string, when: 'request' | 'answer'): string {
  const names = Object.keys(dialects) as TestSurface['name'][]
  const paths = { chat: '/v1', messages: '', responses: '/v1', gemini: '/v1beta' }
  const providers = names.map(
    (name) =>
      `  - { id: ${name}-host, dialect: ${dialects[name]}, base_url: "${upstream}${paths[name]}", api_key: k-${name} }`,
  )
  const failing = Object.keys(faults)
  const prefixes = ['judge', 'watch', 'open', 'idle', ...failing]
  const price = 'price: { input: "1.00", output: "2.00" }, max_output_tokens: 8000, default_max_tokens: 4096'
  const modelAt = (prefix: string, name: string) =>
    `  - { id: ${prefix}/${name}, ${price}, routes: [{ provider: ${name}-host, model: up-${name} }] }`
  const models = prefixes.flatMap((prefix) => names.map((name) => modelAt(prefix, name)))
  models.push(...failing.map((name) => modelAt(`open-${name}`, 'chat')))
  const policy = (id: string, path: string, more = '') =>
    `  - { id: ${id}, url: "${endpoint}/${path}", secret: "${policySecret}", when: ${when}, models: ["${id}/*"]${more} }`
  return `providers:
${providers.join('\n')}
models:
${models.join('\n')}
  - { id: judge/embed, tags: [embeddings], context_tokens: 8192, price: { input: "0.10", output: "0" }, routes: [{ provider: chat-host, model: up-embed }] }
policies:
${policy('judge', 'judge', ', timeout_ms: 10000')}
${policy('watch', 'judge', ', mode: watch, timeout_ms: 10000')}
${policy('open', 'error', ', on_failure: open, timeout_ms: 10000')}
${failing.map((name) => policy(name, name, `, timeout_ms: ${name === 'hang' || name === 'stall' ? 50 : 10000}`)).join('\n')}
${failing.map((name) => policy(`open-${name}`, name, `, on_failure: open, timeout_ms: ${name === 'hang' || name === 'stall' ? 50 : 10000}`)).join('\n')}
`
}
