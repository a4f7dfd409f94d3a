// Providers that send bytes which no request asked for, each in its own way, and four tenants on them: two that share the
// operator's key, two with their own. Counts whose answers everyone got.

import { post } from '../parts/ask.ts'
import type { Gateway } from '../parts/gateway.ts'
import { chat } from '../parts/surfaces.ts'
import { startUpstream, type UpstreamHandler, type UpstreamReply } from '../parts/upstream.ts'
import { startTenancy } from '../tenancy/tenancy.ts'

export interface StrayResult {
  readonly kind: string
  readonly own: number
  /** An answer to a request of another tenant, or to another request of the same one. */
  readonly otherTenants: number
  readonly otherRequests: number
  /** Answered with an error. */
  readonly refused: number
  /** Requests beyond the calls: the gateway sent a call again. */
  readonly repeated: number
  readonly connections: number
  /** Stray responses that the gateway noticed. */
  readonly noticed: number
}

interface Said {
  /** The answer to the call, as it is sent. */
  readonly answer: string
  /** The same once more: what strays. */
  readonly stray: string
  readonly nth: number
}

type Strays = (said: Said, reply: UpstreamReply) => Promise<void>

const after =
  (milliseconds: number): Strays =>
  async ({ answer, stray }, reply) => {
    await reply.write(answer)
    await Bun.sleep(milliseconds)
    await reply.write(stray)
  }

const refusal = '{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}'
const refused = `HTTP/1.1 400 Bad Request\r\nconnection: keep-alive\r\ncontent-type: application/json\r\ncontent-length: ${refusal.length}\r\n\r\n${refusal}`

export const strayKinds: Readonly<Record<string, Strays>> = {
  'in the same packet': ({ answer, stray }, reply) => reply.write(answer + stray),
  ...Object.fromEntries([0, 2, 5, 15, 25, 60].map((ms) => [`${ms} ms later`, after(ms)])),
  continually: async ({ answer, stray }, reply) => {
    await reply.write(answer)
    for (let n = 0; n < 20; n++) {
      await Bun.sleep(3)
      await reply.write(stray)
    }
  },
  'in two pieces': async ({ answer, stray }, reply) => {
    await reply.write(answer)
    await Bun.sleep(1)
    await reply.write(stray.slice(0, 40))
    await Bun.sleep(30)
    await reply.write(stray.slice(40))
  },
  'after a refusal that keeps the connection': ({ answer, stray, nth }, reply) =>
    nth % 5 === 0 ? after(1)({ answer: refused, stray, nth }, reply) : reply.write(answer),
  'as a body beyond its length': ({ answer, stray }, reply) =>
    reply.write(answer + stray.slice(stray.indexOf('\r\n\r\n') + 4)),
}

const head = 'HTTP/1.1 200 OK\r\ncontent-type: '

function whole(content: string): string {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
  const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 }
  const body = JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage })
  return `${head}application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

function streamed(content: string): string {
  const chunk = (delta: object, finish_reason: string | null) => {
    const choices = [{ index: 0, delta, finish_reason }]
    return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`
  }
  const text = `${chunk({ role: 'assistant', content }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`
  const length = text.length.toString(16)
  return `${head}text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${length}\r\n${text}\r\n0\r\n\r\n`
}

function straying(strays: Strays, count: () => number): UpstreamHandler {
  return async ({ body }, reply) => {
    const sent = JSON.parse(new TextDecoder().decode(body)) as { messages: { content: string }[]; stream?: boolean }
    const content = `answer to ${sent.messages[0]?.content}`
    const say = sent.stream ? streamed : whole
    await strays({ answer: say(content), stray: say(content), nth: count() }, reply)
  }
}

/** The text of the answer; undefined = an error. */
async function ask(gateway: Gateway, key: string, model: string, prompt: string, stream: boolean) {
  const messages = [{ role: 'user', content: prompt }]
  const response = await post({ url: gateway.url, key }, chat.path, { model, stream, messages })
  const text = await response.text()
  return response.status === 200 ? /answer to (tenant \d+, worker \d+, call \d+)/.exec(text)?.[1] : undefined
}

const workers = 8
/** Far more than the latest stray response needs. */
const triesMax = 1_000

/** `own`: tenants 2 and 3 bring a key. */
export async function runStrays(kinds: readonly string[], calls: number, onResult: (result: StrayResult) => void) {
  const received = new Map<string, number>()
  const upstreams = kinds.map((kind) => {
    const count = () => {
      received.set(kind, (received.get(kind) ?? 0) + 1)
      return received.get(kind) ?? 0
    }
    return startUpstream(straying(strayKinds[kind] as Strays, count))
  })
  const provider = (url: string, n: number) =>
    `  - { id: p${n}, dialect: openai-chat, base_url: "${url}/v1", api_key: shared }`
  const model = (n: number) =>
    `  - { id: stray/m${n}, price: { input: "0.01", output: "0.01" }, routes: [{ provider: p${n}, model: m }] }`
  await using tenancy = await startTenancy({
    config: `providers:\n${upstreams.map(({ url }, n) => provider(url, n)).join('\n')}\nmodels:\n${kinds.map((_, n) => model(n)).join('\n')}\n`,
  })
  const { gateway } = tenancy
  const tenants = await Promise.all([0, 1, 2, 3].map(() => tenancy.tenant({ credit: '1000.00' })))
  for (const tenant of tenants.slice(2)) {
    for (const n of kinds.keys()) {
      const path = `/api/workspaces/${tenant.workspaceId}/credentials/p${n}`
      await tenancy.must('PUT', path, { api_key: `own-${tenant.workspaceId}` })
    }
  }
  for (const [n, kind] of kinds.entries()) {
    const counts = { own: 0, otherTenants: 0, otherRequests: 0, refused: 0 }
    let next = 0
    const work = async (worker: number) => {
      const tenant = worker % tenants.length
      while (next < calls) {
        const prompt = `tenant ${tenant}, worker ${worker}, call ${next++}`
        const got = await ask(gateway, tenants[tenant]?.key ?? '', `stray/m${n}`, prompt, next % 2 === 0)
        if (got === undefined) counts.refused++
        else if (got === prompt) counts.own++
        else if (got.startsWith(`tenant ${tenant},`)) counts.otherRequests++
        else counts.otherTenants++
      }
    }
    await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)))
    const upstream = upstreams[n]
    const host = new URL(upstream?.url ?? '').host
    const readNoticed = async () => {
      const { text } = await tenancy.api('GET', '/metrics')
      const count = new RegExp(`^tollgate_stray_responses_total\\{host="${host}"\\} (\\d+)`, 'm').exec(text)?.[1]
      return Number(count ?? 0)
    }
    let noticed = await readNoticed()
    // The first one may come later than the last answer.
    for (let tries = 0; noticed === 0 && tries < triesMax; tries++) {
      await Bun.sleep(5)
      noticed = await readNoticed()
    }
    const repeated = (received.get(kind) ?? 0) - calls
    onResult({ kind, ...counts, repeated, connections: upstream?.acceptedConnections() ?? 0, noticed })
  }
  for (const upstream of upstreams) upstream.stop()
}
