// Clients that mean harm by being slow, in any number: some never finish their headers or their bodies, some ask for long
// answers and take a little at a time. Meanwhile others use the gateway as it is meant, and what they see is measured.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ask } from '../parts/ask.ts'
import { type CrashGateway, startCrashGateway } from '../parts/crash-gateway.ts'
import { failoverConfig } from '../parts/gateway.ts'
import { connect, type RawConnection } from '../parts/raw-client.ts'
import { bodyOf, bothSurfaces, requestBytes } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'

export interface SlowOptions {
  readonly slowHeaders: number
  /** Without a key, and as soon as one is turned away there is another. */
  readonly slowBodies: number
  readonly slowReaders: number
  /** Good requests, some at a time, while the slow ones are there. */
  readonly goodRequests: number
  /** How many files the gateway may open; absent = as many as this process. */
  readonly files?: number
  /** The machine has no other load. */
  readonly isAlone?: boolean
  onProgress?(text: string): void
}

export interface SlowResult {
  /** Results of good requests that got no answer, after the retries of official clients. */
  readonly errors: readonly string[]
  /** Good requests that got a retryable error, and retried. */
  readonly retried: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers of `/healthz` meanwhile, each on a connection of its own, by status. */
  readonly probes: Readonly<Record<string, number>>
  /** How many slow ones the gateway still bore at the end. */
  readonly openHeaders: number
  readonly openReaders: number
  /** Resident MiB of the gateway's process before, and at most while all of them were there. */
  readonly mebibytesBefore: number
  readonly mebibytesMost: number
}

const goodAtOnce = 8
/** The bytes that a slow reader is offered each time, as often as models send; it takes far less. */
const pieceBytes = 16 * 1024
const pieceEveryMs = 500
/** Slow bodies that come again, each second. Hundreds at once would push out whoever has just connected. */
const reopenedMax = 5
/** As official clients do. */
const retriesMax = 2

/** The gateway is a separate process, so that its memory is measured alone. */
export async function runSlowClients(options: SlowOptions): Promise<SlowResult> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-slow-'))
  const upstream = startLongWinded()
  const configPath = join(folder, 'tollgate.yaml')
  const dataFolder = join(folder, 'data')
  mkdirSync(dataFolder, { mode: 0o700 })
  writeFileSync(configPath, failoverConfig([upstream.url]))
  // As the launcher does: without it the 257th stream would wait for one of the others to end.
  const prefix = ['env', 'BUN_CONFIG_MAX_HTTP_REQUESTS=65000']
  const { isAlone = false, files } = options
  if (files !== undefined) prefix.push('sh', '-c', `ulimit -n ${files} && exec "$@"`, 'sh')
  const gateway = await startCrashGateway({ dataFolder, databaseUrl: undefined, configPath }, { prefix, isAlone })
  try {
    return await besiege(gateway, options)
  } finally {
    await gateway.kill()
    upstream.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Answers at once, or, where a stream is wanted, without an end. */
function startLongWinded(): Upstream {
  return startUpstream(async (call, reply) => {
    const { opening, says, whole } = wordsFor(call)
    if (call.json().stream !== true) return reply.send(200, { 'content-type': 'application/json' }, whole)
    const record = Buffer.from(says('x'.repeat(pieceBytes)))
    await reply.startStream()
    await reply.chunk(opening + says('hello'))
    while (!call.isClosed()) {
      await reply.chunk(record)
      await Bun.sleep(pieceEveryMs)
    }
  })
}

async function besiege(gateway: CrashGateway, options: SlowOptions): Promise<SlowResult> {
  const { slowHeaders, slowBodies, slowReaders, goodRequests, onProgress = () => {} } = options
  // Warm, so that what any first request needs is not counted.
  await sendGood(gateway, goodAtOnce * 4)
  const mebibytesBefore = mebibytesOf(gateway.pid)
  const headers = await many(slowHeaders, () => openSlowHeader(gateway))
  const readers = await many(slowReaders, () => openSlowReader(gateway))
  const bodies = await many(slowBodies, () => openSlowBody(gateway))
  onProgress(
    `${headers.length} slow headers, ${bodies.length} slow bodies and ${readers.length} slow readers are there`,
  )
  let mebibytesMost = mebibytesBefore
  const drip = setInterval(() => {
    for (const connection of [...headers, ...bodies]) if (!connection.isClosed()) void connection.send('y')
    const turnedAway = bodies.flatMap((connection, at) => (connection.isClosed() ? [at] : []))
    for (const at of turnedAway.slice(0, reopenedMax)) {
      void openSlowBody(gateway).then((next) => (bodies[at] = next))
    }
    for (const connection of readers) connection.resume()
    setTimeout(() => readers.forEach((connection) => void connection.pause()), 5)
    mebibytesMost = Math.max(mebibytesMost, mebibytesOf(gateway.pid))
  }, 1000)
  const probing = startProbing(gateway)
  try {
    const { errors, times, retried } = await sendGood(gateway, goodRequests)
    const probes = await probing.stop()
    mebibytesMost = Math.max(mebibytesMost, mebibytesOf(gateway.pid))
    const at = (share: number): number => times[Math.floor(share * (times.length - 1))] ?? 0
    const open = (connections: readonly RawConnection[]) => connections.filter((one) => !one.isClosed()).length
    return {
      errors: [...errors, ...gateway.errors()],
      retried,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      probes,
      openHeaders: open(headers),
      openReaders: open(readers),
      mebibytesBefore,
      mebibytesMost,
    }
  } finally {
    clearInterval(drip)
    await probing.stop()
    for (const connection of [...headers, ...bodies, ...readers]) connection.leave()
  }
}

/** Asks for `/healthz` again and again, as an orchestrator does. */
function startProbing({ url }: CrashGateway) {
  const probes: Record<string, number> = {}
  let isOver = false
  const probe = async (): Promise<void> => {
    while (!isOver) {
      const connection = await connect(url)
      await connection.send('GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
      const response = await connection.response()
      const outcome = response === 'closed' ? response : String(response.status)
      probes[outcome] = (probes[outcome] ?? 0) + 1
      connection.leave()
      await Bun.sleep(20)
    }
  }
  const probing = probe()
  return {
    async stop() {
      isOver = true
      await probing
      return probes
    },
  }
}

/** Fifty at a time: a backlog that overflows would be the system's doing. */
async function many(count: number, open: () => Promise<RawConnection>): Promise<RawConnection[]> {
  const opened: RawConnection[] = []
  while (opened.length < count) {
    const next = Array.from({ length: Math.min(50, count - opened.length) }, open)
    opened.push(...(await Promise.all(next)))
  }
  return opened
}

async function openSlowHeader(gateway: CrashGateway): Promise<RawConnection> {
  const connection = await connect(gateway.url)
  await connection.send('POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-slow: ')
  return connection
}

async function openSlowBody(gateway: CrashGateway): Promise<RawConnection> {
  const connection = await connect(gateway.url)
  const head =
    'POST /console/session HTTP/1.1\r\nhost: x\r\norigin: http://x\r\ncontent-type: application/json\r\ncontent-length: 4000\r\n\r\n{'
  await connection.send(head)
  return connection
}

async function openSlowReader(gateway: CrashGateway): Promise<RawConnection> {
  const [surface = bothSurfaces[0]] = bothSurfaces
  if (!surface) throw new Error('there is no surface')
  const connection = await connect(gateway.url)
  await connection.send(requestBytes(surface, { key: gateway.key, body: bodyOf(surface, { stream: 'true' }) }))
  await connection.until('hello')
  connection.pause()
  return connection
}

interface GoodTraffic {
  readonly errors: readonly string[]
  /** Latencies of every answer, sorted, in milliseconds. */
  readonly times: readonly number[]
  readonly retried: number
}

async function sendGood(gateway: CrashGateway, count: number): Promise<GoodTraffic> {
  const errors: string[] = []
  const times: number[] = []
  let left = count
  let retried = 0
  const worker = async (at: number): Promise<void> => {
    const surface = bothSurfaces[at % bothSurfaces.length]
    while (surface && left-- > 0) {
      for (let tried = 0; ; tried++) {
        const startedMs = performance.now()
        const response = await ask(gateway, surface, bodyOf(surface))
        const text = await response.text()
        times.push(performance.now() - startedMs)
        if (response.status === 200 && text.includes('hello')) break
        if (response.status !== 503 || tried === retriesMax) {
          errors.push(`${response.status} ${text.slice(0, 300)}`)
          break
        }
        retried++
        await Bun.sleep(Number(response.headers.get('retry-after-ms')))
      }
    }
  }
  await Promise.all(Array.from({ length: goodAtOnce }, (_, at) => worker(at)))
  return { errors, times: times.sort((a, b) => a - b), retried }
}

/** Resident memory of another process; 0 where the system does not tell. */
export function mebibytesOf(pid: number): number {
  try {
    const [, kibibytes = '0'] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kibibytes) / 1024
  } catch {
    return 0
  }
}
