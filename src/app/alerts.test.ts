import { expect } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { createTestClock } from '../../test/parts/ledger.ts'
import { startUpstream } from '../../test/parts/upstream.ts'
import { listAlerts } from '../alerts/alerts.ts'
import { createTarget, sendBySocket } from '../providers/connection-pool.ts'
import { attemptFault } from '../routing/faults.ts'
import { createHealth } from '../routing/health.ts'
import { type AlertsDependencies, createAlerts } from './alerts.ts'

forEachEngine((_, storeTest) => {
  storeTest('says that a provider works again only after it has answered', async ({ database }) => {
    const clock = createTestClock()
    const health = createHealth({ clock, random: () => 0.5 })
    const route = health.route({
      ...{ providerId: 'acme', baseUrl: 'https://acme.test', upstreamModel: 'm', credentialId: 'platform' },
    })
    const works: (() => Promise<unknown>)[] = []
    const logged: string[] = []
    const say = (message: string) => void logged.push(message)
    const parts = {
      ...{ clock, health, address: () => 'http://gate.test' },
      log: { info: say, warn: say, error: say, line() {}, flush() {} },
      source: { current: { mail: undefined, alerts: { emailDomains: [] }, webhooks: { allowHosts: [] } } },
      storage: { database, subkeys: () => ({ current: new Uint8Array(32) }) },
      catalog: { current: { providers: new Map([['acme', {}]]) } },
      every(_milliseconds: number, work: () => Promise<unknown>) {
        works.push(work)
        return () => {}
      },
    }
    await using alerts = { [Symbol.asyncDispose]: createAlerts(parts as unknown as AlertsDependencies).close }
    expect(alerts).toBeDefined()
    const raised = async () => {
      for (const work of works) await work()
      return (await listAlerts(database.sql, { limit: 10 })).items.map(({ kind }) => kind)
    }
    const attempt = (isAnswered: boolean) => {
      const startedMs = health.begin(route, 'ordinary')
      if (typeof startedMs !== 'number') throw new Error('the route must not be called now')
      clock.advance(10)
      if (isAnswered) health.recordOk(route, startedMs)
      else health.recordFault(route, startedMs, attemptFault('failing'))
    }
    attempt(true)
    expect(await raised()).toEqual([])
    // Five in a row eject a route, for at most 18 s.
    for (let fault = 0; fault < 5; fault++) attempt(false)
    expect(health.state(route)).toMatchObject({ state: 'ejected' })
    expect(await raised()).toEqual(['provider.down'])
    clock.advance(20_000)
    expect(health.state(route)).toMatchObject({ state: 'probing' })
    expect(await raised()).toEqual(['provider.down'])
    attempt(false)
    clock.advance(300_000)
    expect(await raised()).toEqual(['provider.down'])
    attempt(true)
    expect(await raised()).toEqual(['provider.up', 'provider.down'])
    expect(await raised()).toEqual(['provider.up', 'provider.down'])
    expect(logged).toEqual([])
  })

  storeTest('raises an alert when a host sends a response that no request asked for', async ({ database }) => {
    const clock = createTestClock()
    const works: (() => Promise<unknown>)[] = []
    const logged: string[] = []
    const say = (message: string) => void logged.push(message)
    const upstream = startUpstream((_, reply) => reply.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nstray'))
    const parts = {
      ...{ clock, health: createHealth({ clock, random: () => 0.5 }), address: () => 'http://gate.test' },
      log: { info: say, warn: say, error: say, line() {}, flush() {} },
      source: { current: { mail: undefined, alerts: { emailDomains: [] }, webhooks: { allowHosts: [] } } },
      storage: { database, subkeys: () => ({ current: new Uint8Array(32) }) },
      catalog: { current: { providers: new Map() } },
      every(_milliseconds: number, work: () => Promise<unknown>) {
        works.push(work)
        return () => {}
      },
    }
    await using alerts = { [Symbol.asyncDispose]: createAlerts(parts as unknown as AlertsDependencies).close }
    expect(alerts).toBeDefined()
    const { host, hostname, port } = new URL(upstream.url)
    const target = createTarget({ isTls: false, hostname, port: Number(port), host })
    const post = { path: '/', headers: {}, body: new Uint8Array(0), signal: new AbortController().signal }
    for (let round = 0; round < 2; round++) {
      await (await sendBySocket(target, post)).bytes()
      for (const work of works) await work()
    }
    const { items } = await listAlerts(database.sql, { limit: 10 })
    expect(items).toMatchObject([{ kind: 'provider.stray', message: expect.stringContaining(host) }])
    expect(logged).toHaveLength(2)
    upstream.stop()
  })
})
