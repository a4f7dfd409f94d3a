// Coding agents over two replicas and two routes of each model: every turn goes to the route of the one before, carries
// what finds the prompt cache there, and begins with all of the prompt before. A provider's cache then hits as if the
// agent had called it directly.

import { afterAll, describe, expect, test } from 'bun:test'
import { type DialectName, dialectOfPath } from '../conformance/cells.ts'
import { post } from '../parts/ask.ts'
import { type Gateway, stopAll } from '../parts/gateway.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { findRedisProgram, startRedis } from '../parts/redis.ts'
import { startUpstream, type UpstreamCall } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'
import { type Agent, agents, turnsPerSession } from './conversations.ts'
import { PrefixCache, promptOf, withoutMarks } from './prefix-cache.ts'
import { dialects, routeOf, routes, startReplicas } from './two-replicas.ts'

const upstream = startUpstream(answerHello)
afterAll(() => upstream.stop())

/** A session's turns, alternating between the replicas; returns what the provider got. */
async function run(
  agent: Agent,
  dialect: DialectName,
  session: string,
  replicas: readonly Gateway[],
): Promise<UpstreamCall[]> {
  const calls: UpstreamCall[] = []
  for (let turn = 0; turn < turnsPerSession; turn++) {
    const { headers, body } = agent.request(`test/${dialect}`, session, turn)
    const at = replicas[turn % replicas.length] as Gateway
    const before = upstream.calls.length
    const response = await post({ url: at.url, key: replicas[0]?.key ?? '' }, agent.path, body, headers)
    const text = await response.text()
    expect([response.status, text.slice(0, 300)]).toEqual([200, expect.any(String)])
    expect(upstream.calls.length).toBe(before + 1)
    calls.push(upstream.calls[before] as UpstreamCall)
  }
  return calls
}

/** The prompt's text without marks and billing line: what stays, and what grows at its end, without what closes it. */
function promptText(dialect: DialectName, call: UpstreamCall): { readonly fixed: string; readonly growing: string } {
  const { tools, system, instructions, systemInstruction, ...body } = call.json()
  const name = { chat: 'messages', messages: 'messages', gemini: 'contents', responses: 'input' }[dialect]
  const text = withoutMarks(new TextDecoder().decode(call.body))
  const start = text.indexOf(`"${name}":[`)
  const { length } = `"${name}":${withoutMarks(JSON.stringify(body[name]))}`
  const fixed = JSON.stringify([tools, system, instructions, systemInstruction])
  const billing = /\{"type":"text","text":"x-anthropic-billing-header[^"]*"\},/
  return { fixed: withoutMarks(fixed).replace(billing, ''), growing: text.slice(start, start + length - 1) }
}

/** The key or marks without which the provider would not find its cache. */
function cacheHint(dialect: DialectName, call: UpstreamCall): string | number | undefined {
  if (dialect === 'gemini') return 'implicit'
  if (dialect === 'messages') return new TextDecoder().decode(call.body).match(/"cache_control"/g)?.length
  const { prompt_cache_key: key } = call.json()
  return typeof key === 'string' ? key : undefined
}

const sessions = 3

/** The cache hits of the agent's own requests at a provider of its dialect. */
function directHitRate(agent: Agent): number {
  const direct = new PrefixCache()
  for (let session = 0; session < sessions; session++) {
    for (let turn = 0; turn < turnsPerSession; turn++) {
      const dialect = dialectOfPath(agent.path)
      const { body } = agent.request('m', `s${session}`, turn)
      direct.take(promptOf(dialect, body), `${session}`, dialect === 'messages' ? 'marked' : 'everything')
    }
  }
  return direct.hitRate
}

describe.skipIf(findPostgresPrograms() === undefined)('an agent on two replicas keeps its prompt cache', () => {
  test.each(agents.flatMap((agent) => dialects.map((dialect) => ({ name: agent.name, agent, dialect }))))(
    '$name on $dialect',
    async ({ agent, dialect }) => {
      replicas ??= startReplicas(upstream.url)
      const cache = new PrefixCache()
      const used = new Set<string>()
      for (let session = 0; session < sessions; session++) {
        const calls = await run(agent, dialect, `s${session}`, await replicas)
        const found = new Set(calls.map(routeOf))
        expect([...found]).toHaveLength(1)
        for (const route of found) used.add(route)
        const [first] = calls
        for (const [turn, call] of calls.entries()) {
          const hint = cacheHint(dialect, call)
          expect(call.json()).not.toHaveProperty('promptCacheKey')
          expect([turn, hint]).toEqual([turn, expect.anything()])
          if (dialect === 'messages') expect(hint).toBeLessThanOrEqual(4)
          else expect(hint).toBe(cacheHint(dialect, first as UpstreamCall) as string)
          // Byte for byte.
          const next = calls[turn + 1]
          if (next) {
            const [one, two] = [promptText(dialect, call), promptText(dialect, next)]
            expect(two.fixed).toBe(one.fixed)
            expect(two.growing.startsWith(one.growing)).toBe(true)
          }
          // The prefix that sessions share is left out of both figures: it depends on chance.
          const where = `${session} ${routeOf(call)} ${dialect === 'messages' ? '' : hint}`
          cache.take(promptOf(dialect, call.json()), where, dialect === 'messages' ? 'marked' : 'everything')
        }
      }
      expect(cache.hitRate / directHitRate(agent)).toBeGreaterThanOrEqual(0.95)
      for (const route of used) routesSeen.add(route)
    },
  )

  test('sessions are spread over the routes', () => {
    expect([...routesSeen].sort()).toEqual(routes)
  })

  test.skipIf(findRedisProgram() === undefined)(
    'with Redis a session stays on the route it failed over to',
    async () => {
      await using server = await startRedis()
      const pair = await startReplicas(upstream.url, server.url)
      const agent = agents[1] as Agent
      const [usual] = await run(agent, 'chat', 'moved', pair)
      const down = routeOf(usual as UpstreamCall)
      upstream.handle((call, reply) =>
        routeOf(call) === down ? reply.json(500, { error: { message: 'down' } }) : answerHello(call, reply),
      )
      // One turn at the first replica finds the route down and moves on.
      const { headers, body } = agent.request('test/chat', 'moved', 3)
      const ask = (at: Gateway) =>
        post({ url: at.url, key: pair[0].key }, agent.path, body, headers).then((response) => response.text())
      await ask(pair[0])
      upstream.handle(answerHello)
      // The other one, which has seen no failure, follows. Writes to Redis are not awaited.
      do await ask(pair[1])
      while (routeOf(upstream.calls.at(-1) as UpstreamCall) === down)
      expect(routeOf(upstream.calls.at(-1) as UpstreamCall)).not.toBe(down)
      await stopAll(...pair)
    },
  )
})

let replicas: ReturnType<typeof startReplicas> | undefined
const routesSeen = new Set<string>()
afterAll(async () => stopAll(...((await replicas) ?? [])))
