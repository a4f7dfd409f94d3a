// Eight tool calls of a real agent, its turns alternating between two replicas: whether they stay on one route, and how
// much of the prompt a provider's cache has, compared with the requests as the agent sent them.

import { type DialectName, dialectOfPath } from '../conformance/cells.ts'
import { stopAll } from '../parts/gateway.ts'
import { startUpstream } from '../parts/upstream.ts'
import { startBalancer } from './balancer.ts'
import { startLoopbackProxy } from './loopback-proxy.ts'
import { PrefixCache, promptOf } from './prefix-cache.ts'
import { Desk, type RealAgent } from './real-agents.ts'
import { dialects, routeOf, startReplicas } from './two-replicas.ts'

export interface CacheFigures {
  readonly dialect: DialectName
  readonly exitCode: number
  readonly turns: number
  readonly routes: number
  /** Shares of the prompts. */
  readonly direct: number
  readonly throughGateway: number
}

/** Titles and the like are no turns. */
const hasTools = ({ tools }: Record<string, unknown>) => Array.isArray(tools) && tools.length > 0
const cachesOf = (dialect: DialectName) => (dialect === 'messages' ? 'marked' : 'everything')

export async function makeEightCalls(agent: RealAgent, folder: string): Promise<CacheFigures[]> {
  const upstream = startUpstream((_, reply) => reply.json(500, {}))
  const replicas = await startReplicas(upstream.url)
  const proxy = await startLoopbackProxy()
  const figures: CacheFigures[] = []
  try {
    for (const dialect of dialects) {
      using desk = new Desk(agent, folder, replicas[0], proxy.url, 8)
      const balancer = startBalancer(replicas)
      upstream.handle(desk.model)
      const before = upstream.calls.length
      const { out } = await desk.tollgate(['connect', agent.id, '--model', `test/${dialect}`], balancer.url)
      const { exitCode } = await desk.run(out)
      await balancer.stop()
      const direct = new PrefixCache()
      for (const { path, body } of balancer.sent) {
        const json = body === '' ? {} : (JSON.parse(body) as Record<string, unknown>)
        if (!hasTools(json)) continue
        direct.take(promptOf(dialectOfPath(path), json), '', cachesOf(dialectOfPath(path)))
      }
      const calls = upstream.calls.slice(before).filter((call) => hasTools(call.json()))
      const cache = new PrefixCache()
      for (const call of calls) {
        const where = `${routeOf(call)} ${call.json().prompt_cache_key ?? ''}`
        cache.take(promptOf(dialect, call.json()), where, cachesOf(dialect))
      }
      figures.push({
        ...{ dialect, exitCode, turns: calls.length, routes: new Set(calls.map(routeOf)).size },
        ...{ direct: direct.hitRate, throughGateway: cache.hitRate },
      })
    }
    return figures
  } finally {
    proxy.stop()
    await stopAll(...replicas, upstream)
  }
}
