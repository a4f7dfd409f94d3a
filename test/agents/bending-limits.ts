// Agents at a spend limit that bends while they work: once the limit has no room, another model goes on with the task; from
// 80 % on, requests are slowed down and the agent waits. The task ends, and what happened can be seen.

import { startUpstream, type UpstreamHandler } from '../parts/upstream.ts'
import { startLoopbackProxy } from './loopback-proxy.ts'
import { answer, Desk, type RealAgent, startProgram, type Tried } from './real-agents.ts'

export const bends = ['another model', 'slowed down'] as const
export type Bend = (typeof bends)[number]

const [model, other] = ['test/plain-1', 'test/claude-sonnet-4-5']
const notes = 4

interface RequestRow {
  readonly model: string
  readonly requested_model: string | null
  readonly status: number
  readonly warnings: readonly string[]
  readonly cause: string | null
}

/** A call of one's own that costs half a cent: 5,000 tokens of output, at $1 per million and $2 per million. */
const spending: UpstreamHandler = (_, reply) =>
  reply.json(200, {
    ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
    choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: 5000, total_tokens: 5010 },
  })

/** The limit is set after the agent's first answer, so that it bends in the middle of the task. */
export async function tryBending(agent: RealAgent, folder: string, bend: Bend): Promise<Tried> {
  const upstream = startUpstream((_, reply) => reply.json(500, {}))
  const program = await startProgram(upstream.url)
  const proxy = await startLoopbackProxy()
  using desk = new Desk(agent, folder, program, proxy.url, notes)
  try {
    const connected = await desk.tollgate(['connect', agent.id, '--model', model])
    const key = /key_\w+/.exec(connected.err)?.[0] ?? ''
    const { data } = JSON.parse((await desk.tollgate(['keys', 'list', '--json'])).out)
    const project = data.find(({ id }: { id: string }) => id === key)?.project_id
    const limit = async (spendLimit: string) => {
      const set = await desk.tollgate(['limits', 'set', project, '--spend-limit', spendLimit])
      if (set.exit !== 0) throw new Error(set.err)
    }
    if (bend === 'slowed down') {
      upstream.handle(spending)
      await limit('all day 1.2 slow-down 2')
      for (let calls = 0; calls < 96; calls++) {
        const headers = { authorization: `Bearer ${program.key}`, 'content-type': 'application/json' }
        const messages = [{ role: 'user', content: 'x' }]
        const body = JSON.stringify({ model, max_tokens: 5000, messages })
        const spent = await fetch(`${program.url}/v1/chat/completions`, { method: 'POST', headers, body })
        if (spent.status !== 200) break
      }
    }
    let isBent = bend === 'slowed down'
    const handle = desk.model
    const before = upstream.calls.length
    upstream.handle(async (call, reply) => {
      if (!isBent && Array.isArray(call.json().tools)) {
        isBent = true
        await limit(`all !${other} day 0.000001 then ${other}`)
      }
      await handle(call, reply)
    })
    const startedMs = performance.now()
    const run = await desk.run(connected.out)
    const seconds = (performance.now() - startedMs) / 1000
    const all = JSON.parse((await desk.tollgate(['requests', '--json', '--key', key])).out).data as RequestRow[]
    const answered = all.filter(({ status }) => status === 200)
    const word = bend === 'slowed down' ? 'slowed_by_spend_limit' : 'model_by_spend_limit'
    const bent = answered.filter(({ warnings }) => warnings.some((warning) => warning.startsWith(word)))
    const waited = all.filter(({ status }) => status === 429).length
    const wrong = [
      run.exitCode !== 0 && `exit code ${run.exitCode}`,
      !run.printed.includes(answer) && 'the task is not done',
      upstream.calls.length - before < notes && 'the notes were not read',
      bent.length === 0 && 'no request has the warning of the limit',
      bend === 'another model' &&
        bent.some((row) => row.model !== other || row.requested_model !== model) &&
        'the log does not name both models',
      bend === 'another model' && waited > 0 && `${waited} requests were refused`,
      bend === 'slowed down' && waited === 0 && 'no request had to wait',
    ]
    const figures = `${answered.length} answered, ${bent.length} with a warning, ${waited} told to wait`
    const faults = wrong.filter((fault) => typeof fault === 'string')
    return { faults, printed: `${figures}\n${run.printed}`, seconds }
  } finally {
    proxy.stop()
    await program.stop()
    upstream.stop()
  }
}
