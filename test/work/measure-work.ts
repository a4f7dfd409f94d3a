// Starts the gateway as a process on SQLite, sends it a fixed number of requests, and answers with what each of them made
// it do: counts from inside the process, from a trace of its calls to the kernel, and from the collector's own log.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { askSocket } from '../parts/ask-socket.ts'
import type { Ask } from '../parts/crash-client.ts'
import { type CrashGateway, startCrashGateway } from '../parts/crash-gateway.ts'
import { readTrace, type TracedCall, tracer, wholeTrace } from '../parts/crash-trace.ts'
import { acceptInvitation, signInDevice } from '../parts/device-sign-in.ts'
import { responsesConfig } from '../parts/gateway.ts'
import { manage } from '../parts/manage.ts'
import type { ThreadWork, WorkQuestion } from './count-work.ts'
import { type Kind, kinds, mixed, type Provider, send, startProvider } from './workload.ts'

/** The cost of one request while nothing else runs. */
export interface AloneWork {
  readonly kind: string
  /** On the connection that writes, with the begin and the commit. */
  readonly statements: number
  /** On the connections that only read. */
  readonly reads: number
  readonly commits: number
  readonly syncs: number
  readonly databaseBytes: number
  /** By the program's own calls, for each byte that the provider said. */
  readonly copiesPerByte: number
  readonly views: number
  readonly clientWrites: number
  /** Objects, strings, functions, promises and so on, with what asking for the figure takes. */
  readonly cells: number
}

export interface Work {
  readonly alone: readonly AloneWork[]
  /** Per request in a wave of requests that end at the same moment. */
  readonly together: {
    readonly statements: number
    readonly commits: number
    readonly syncs: number
    readonly databaseBytes: number
  }
  /** Statements that applied the journal, per request of the rounds. */
  readonly applied: number
  /** For 1,000 requests, after a collection, in the middle one of the rounds: what is made once is no leak. */
  readonly heapGrowthBytes: number
  readonly objectGrowth: number
  /** Not of a request but since the start: where a request rightly adds nothing, these show that somebody counts. */
  readonly sinceStart: { readonly reads: number; readonly heapBytes: number; readonly objects: number }
}

/** With the access token of a person in place of a key. */
const signedInKinds = kinds.slice(0, 1).map((kind) => ({ ...kind, name: `signed in, ${kind.name}` }))

const warmUp = 960
const aloneTimes = 4
const aloneRounds = 5
const wave = 64
const waves = 3
const heapRounds = 5
const heapRequests = 320
const atOnce = 16
const triesMax = 10

export async function measureWork(): Promise<Work> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-work-'))
  const provider = startProvider()
  const configPath = join(folder, 'tollgate.yaml')
  writeFileSync(configPath, responsesConfig(provider.url))
  const probePath = join(folder, 'probe')
  const tracePath = join(folder, 'trace')
  try {
    const gateway = await startCrashGateway(
      { dataFolder: folder, databaseUrl: undefined, configPath },
      {
        prefix: tracer(tracePath, 64),
        preload: [join(import.meta.dir, 'count-work.ts')],
        env: {
          WORK_PROBE: probePath,
          // No collection between the requested ones.
          BUN_JSC_largeHeapSize: String(2 ** 30),
          BUN_JSC_useConcurrentGC: '0',
        },
      },
    )
    const scene = { gateway, provider, ask: (question: WorkQuestion) => askThreads(probePath, question) }
    await send(gateway, mixed(warmUp), atOnce)
    const heap = await measureHeap(scene)
    const alone = await measureAlone(scene, kinds)
    const token = await signIn(gateway, folder)
    const byToken = await measureAlone({ ...scene, gateway: { ...gateway, key: token } }, signedInKinds)
    const together = await measureTogether(scene)
    await gateway.stop()
    const calls = readTrace(await wholeTrace(tracePath, gateway.pid))
    const port = Number(new URL(gateway.url).port)
    const all = [...alone, ...byToken].map((work) => ({ ...work, ...traced(calls, work.mark, port, aloneTimes) }))
    return {
      alone: [...kinds, ...signedInKinds].map(({ name }) => leastOf(name, all)),
      together: leastWave(together.map((work) => ({ ...work, ...traced(calls, work.mark, port, wave) }))),
      ...heap,
    }
  } finally {
    provider.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Scene {
  readonly gateway: CrashGateway
  readonly provider: Provider
  ask(question: WorkQuestion): Promise<Threads>
}

interface Threads {
  readonly main: ThreadWork
  readonly writer: ThreadWork
}

async function measureHeap({ gateway, ask }: Scene) {
  const growths: { bytes: number; objects: number }[] = []
  const collect = async () => (await ask('collect')).main
  let before = await collect()
  const appliedBefore = (await ask('read')).writer.applied
  const sinceStart = { reads: before.statements, heapBytes: before.heapBytes, objects: before.objects }
  for (let round = 0; round < heapRounds; round++) {
    await send(gateway, mixed(heapRequests), atOnce)
    const after = await collect()
    growths.push({
      bytes: after.heapBytes - before.heapBytes,
      objects: after.objects - before.objects,
    })
    before = after
  }
  const per = (requests: number, of: (growth: (typeof growths)[number]) => number) =>
    growths.map((growth) => (of(growth) * requests) / heapRequests).sort((one, other) => one - other)
  const applied = ((await ask('read')).writer.applied - appliedBefore) / (heapRounds * heapRequests)
  const middle = (heapRounds - 1) / 2
  const heapGrowthBytes = per(1000, ({ bytes }) => bytes)[middle] ?? Number.NaN
  const objectGrowth = per(1000, ({ objects }) => objects)[middle] ?? Number.NaN
  return { heapGrowthBytes, objectGrowth, applied, sinceStart }
}

/**
 * Several times, and the least of them, of cells the middle one: the gateway does its own housekeeping in between, on a busy
 * machine more than once.
 */
async function measureAlone(scene: Scene, measured: readonly Kind[]) {
  const work = []
  for (const { name, ask } of measured) {
    for (let time = 0; time < aloneRounds; time++) {
      const said = scene.provider.saidBytes()
      const counted = await between(scene, `${name} ${time}`, Array(aloneTimes).fill(ask), 1)
      const copiesPerByte = counted.copiedBytes / ((scene.provider.saidBytes() - said) / aloneTimes)
      work.push({ ...counted, kind: name, copiesPerByte })
    }
  }
  return work
}

function leastOf(kind: string, work: readonly AloneWork[]): AloneWork {
  const of = work.filter((one) => one.kind === kind)
  const least = (figure: (one: AloneWork) => number) => Math.min(...of.map(figure))
  const mostCells = Math.max(...of.map(({ cells }) => cells))
  /** A garbage collection in between removes many of the cells that were there before. */
  const hadCollection = (cells: number) => cells < mostCells / 2
  // The middle one, because a collection may also remove a few: the least would then be too little.
  const cells = of.flatMap((one) => (hadCollection(one.cells) ? [] : one.cells)).sort((one, other) => one - other)
  return {
    kind,
    statements: least(({ statements }) => statements),
    reads: least(({ reads }) => reads),
    commits: least(({ commits }) => commits),
    syncs: least(({ syncs }) => syncs),
    databaseBytes: least(({ databaseBytes }) => databaseBytes),
    copiesPerByte: least(({ copiesPerByte }) => copiesPerByte),
    views: least(({ views }) => views),
    clientWrites: least(({ clientWrites }) => clientWrites),
    cells: cells[Math.floor((cells.length - 1) / 2)] ?? Number.NaN,
  }
}

/** The access token of a person in the project of the first key. */
async function signIn({ url }: CrashGateway, dataFolder: string): Promise<string> {
  const call = async (method: string, path: string, body?: object) =>
    await manage({ url, dataFolder }, method, path, body)
  const { data: workspaces } = await call('GET', '/api/workspaces')
  const [{ id: workspace }] = workspaces
  const { data: projects } = await call('GET', `/api/workspaces/${workspace}/projects`)
  const invited = { email: 'ada@example.com', role: 'member', workspace_id: workspace }
  const { url: link } = await call('POST', '/api/invitations', invited)
  return (await signInDevice(url, await acceptInvitation(url, link), projects[0].id)).access_token
}

/** Several times, as alone. */
async function measureTogether(scene: Scene) {
  const work = []
  for (let time = 0; time < waves; time++) work.push(await between(scene, `together ${time}`, mixed(wave), wave))
  return work
}

function leastWave(work: readonly Work['together'][]): Work['together'] {
  const least = (figure: (one: Work['together']) => number) => Math.min(...work.map(figure))
  return {
    statements: least(({ statements }) => statements),
    commits: least(({ commits }) => commits),
    syncs: least(({ syncs }) => syncs),
    databaseBytes: least(({ databaseBytes }) => databaseBytes),
  }
}

/** The cost of each request, by the counts before and after; again if the gateway turned one away. */
async function between(scene: Scene, name: string, asks: readonly Ask[], atOnceNow: number) {
  const { gateway, provider, ask } = scene
  for (let tries = 1; tries <= triesMax; tries++) {
    if (atOnceNow > 1) provider.gather(asks.length)
    const mark = `${name} ${tries}`
    const before = await ask(`mark ${mark}`)
    const refusals = await send(gateway, asks, atOnceNow)
    const after = await ask('mark end')
    if (refusals > 0) continue
    const each = (of: (threads: Threads) => number) => (of(after) - of(before)) / asks.length
    return {
      mark,
      statements: each(({ writer }) => writer.statements),
      reads: each(({ main }) => main.statements),
      copiedBytes: each(({ main }) => main.copiedBytes),
      views: each(({ main }) => main.views),
      cells: each(({ main }) => main.cells),
      commits: each(({ writer }) => writer.commits),
    }
  }
  throw new Error(`the gateway turned calls away again and again (${name}); is this machine busy?`)
}

/** The events between a mark and the next. */
function traced(calls: readonly TracedCall[], mark: string, port: number, requests: number) {
  const from = calls.findIndex(({ text }) => text.includes(`"mark ${mark}"`))
  const to = calls.findIndex(({ text }, at) => at > from && text.includes('"mark end"'))
  if (from === -1 || to === -1) throw new Error(`not in the trace: ${mark}`)
  const between = calls.slice(from, to)
  const stored = between.filter(({ target }) => target.includes('/tollgate.db'))
  const isSync = ({ name }: TracedCall) => name === 'fsync' || name === 'fdatasync'
  const writes = stored.filter((call) => !isSync(call))
  const toClient = between.filter(({ target }) => target.startsWith(`TCP:[127.0.0.1:${port}->`))
  return {
    syncs: stored.filter(isSync).length / requests,
    databaseBytes: writes.reduce((sum, { result }) => sum + result, 0) / requests,
    clientWrites: toClient.length / requests,
  }
}

async function askThreads(path: string, question: WorkQuestion): Promise<Threads> {
  const main = await askSocket<ThreadWork>(`${path}-main`, question)
  const writer = await askSocket<ThreadWork>(`${path}-writer`, 'read' satisfies WorkQuestion)
  return { main, writer }
}
