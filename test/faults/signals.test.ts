// Processes that are stopped or die: the gateway finishes running requests after a signal, shortens the drain after a
// second one, and sends an error when a provider is killed in the middle of an answer.

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ask } from '../parts/ask.ts'
import { type CrashGateway, startCrashGateway } from '../parts/crash-gateway.ts'
import { failoverConfig, startGateway } from '../parts/gateway.ts'
import { connect } from '../parts/raw-client.ts'
import { bodyOf, bothSurfaces, requestBytes, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-signals-'))
const gateways: CrashGateway[] = []
afterAll(async () => {
  for (const gateway of gateways) if (gateway.isAlive()) await gateway.kill()
  rmSync(folder, { recursive: true, force: true })
})

async function startProcess(name: string, upstream: Upstream): Promise<CrashGateway> {
  const dataFolder = join(folder, name)
  mkdirSync(dataFolder, { mode: 0o700 })
  const configPath = join(folder, `${name}.yaml`)
  writeFileSync(configPath, failoverConfig([upstream.url]))
  const gateway = await startCrashGateway({ dataFolder, databaseUrl: undefined, configPath })
  gateways.push(gateway)
  return gateway
}

/** A provider that takes its time: a word every few milliseconds. */
function startTalker(): Upstream {
  return startUpstream(async (call, reply) => {
    const { opening, says, ending } = wordsFor(call)
    await reply.startStream()
    await reply.chunk(opening)
    for (let word = 0; word < 20; word++) {
      await reply.chunk(says('hello'))
      await Bun.sleep(10)
    }
    await reply.chunk(ending)
    await reply.finish()
  })
}

/** The result of one request to one replica. */
type Outcome = 'whole' | 'turned away' | { readonly broken: string }

async function request(gateway: CrashGateway, surface: TestSurface): Promise<Outcome> {
  const body = { model: surface.model, stream: true, max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
  let response: Response
  try {
    response = await ask(gateway, surface, body)
  } catch {
    // No connection, or one that was closed before it took the request: a client goes elsewhere.
    return 'turned away'
  }
  try {
    const text = await response.text()
    if (response.status === 503) {
      return response.headers.has('retry-after') ? 'turned away' : { broken: `a 503 without Retry-After: ${text}` }
    }
    const isWhole = response.status === 200 && /\[DONE\]|message_stop/.test(text) && !text.includes('"error"')
    return isWhole ? 'whole' : { broken: `${response.status} ${text}` }
  } catch (error) {
    return { broken: `cut off: ${error}` }
  }
}

describe('SIGTERM', () => {
  test('under load cuts no stream, fails no request and exits 0, while another replica takes over', async () => {
    const upstream = startTalker()
    const leaving = await startProcess('leaving', upstream)
    const staying = await startProcess('staying', upstream)
    const broken: string[] = []
    let isTime = true
    let served = 0
    let movedOver = 0
    const client = async (surface: TestSurface): Promise<void> => {
      while (isTime) {
        let outcome = await request(leaving, surface)
        if (outcome === 'turned away') {
          movedOver++
          outcome = await request(staying, surface)
        }
        if (outcome === 'whole') served++
        else broken.push(typeof outcome === 'string' ? 'turned away by both' : outcome.broken)
      }
    }
    const clients = Array.from({ length: 20 }, (_, at) => client(bothSurfaces[at % 2] as TestSurface))
    while (served < 40) await Bun.sleep(5)
    const ended = leaving.stop()
    expect(await ended).toBe(0)
    const before = served
    while (served < before + 20) await Bun.sleep(5)
    isTime = false
    await Promise.all(clients)
    expect(broken).toEqual([])
    expect(movedOver).toBeGreaterThan(0)
    expect(leaving.errors()).toEqual([])
    expect(await staying.stop()).toBe(0)
    upstream.stop()
  })

  // Five seconds each, in which nothing happens.
  test.concurrent.each([...bothSurfaces])(
    'and another signal end a stream of the $name surface with an error event after five seconds, and it still exits 0',
    async (surface) => {
      // It begins every answer and never ends one.
      const upstream = startUpstream(async (call, reply) => {
        const { opening, says } = wordsFor(call)
        await reply.startStream()
        await reply.chunk(opening + says('hello'))
      })
      const gateway = await startProcess(`twice-${surface.name}`, upstream)
      const connection = await connect(gateway.url)
      const body = bodyOf(surface, { stream: 'true' })
      await connection.send(requestBytes(surface, { key: gateway.key, body }))
      await connection.until('hello')
      const ended = gateway.stop()
      // The other of the two: two equal signals that wait to be delivered are one.
      process.kill(gateway.pid, 'SIGINT')
      const response = await connection.response()
      expect(response).toMatchObject({ status: 200, body: expect.stringContaining('"code":"STREAM_INTERRUPTED"') })
      expect(await ended).toBe(0)
      upstream.stop()
    },
  )
})

describe('kill -9 of a provider in mid-stream', () => {
  test.each([...bothSurfaces])('is reported in an error event on the $name surface', async (surface) => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, 'upstream-child.ts')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const { value } = await child.stdout.getReader().read()
    const url = new TextDecoder().decode(value).trim()
    const gateway = await startGateway({ config: failoverConfig([url]) })
    const connection = await connect(gateway.url)
    await connection.send(requestBytes(surface, { key: gateway.key, body: bodyOf(surface, { stream: 'true' }) }))
    await connection.until('hello')
    child.kill('SIGKILL')
    const response = await connection.response()
    if (response === 'closed') throw new Error('cut off')
    expect(response.status).toBe(200)
    expect(response.body).toContain('"code":"STREAM_INTERRUPTED"')
    expect(response.body).not.toMatch(/\[DONE\]|message_stop/)
    connection.leave()
    await gateway.stop()
    await child.exited
  })
})
