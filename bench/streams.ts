// Memory and many streams: thousands of slow streams at a time, readers that hardly read, and a body of 20 MB beside small
// requests. `npm run bench:streams`, or `bun run bench/streams.ts --quick`; `--write` keeps it in bench/results.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import { scriptOptions } from '../test/parts/script-options.ts'
import { PATHS, requestBody, requestHeaders } from './cells.ts'
import type { Call, Running } from './contenders/contender.ts'
import { startUpstream } from './contenders/start-upstream.ts'
import { tollgate } from './contenders/tollgate.ts'
import type { LoadPlan } from './load.ts'
import { costOf } from './measure.ts'
import { machineFacts, machineLine, type StreamsReport, type StreamsRow, writeResult } from './results.ts'
import { runLoad } from './run-load.ts'
import type { StreamPlan, StreamTotals } from './stream-load.ts'
import { aligned } from './table.ts'
import { writeReadme } from './write-readme.ts'

interface Case {
  readonly name: string
  readonly streams: number
  readonly events: number
  readonly paceMs: number
  /** Bytes of the text of one event, if it is not a word. */
  readonly eventBytes?: number
  readonly slowMs: number
  readonly rssMegabytesMax?: number
}

const CASES: readonly Case[] = [
  { name: '2,000 streams', streams: 2_000, events: 40, paceMs: 1_000, slowMs: 0, rssMegabytesMax: 150 },
  { name: '10,000 streams', streams: 10_000, events: 60, paceMs: 1_000, slowMs: 0 },
  // 13 MB for each, sent within seconds: twice what the kernel's buffers on the way hold, 640 MB in all.
  { name: '50 slow readers', streams: 50, events: 200, paceMs: 10, eventBytes: 64_000, slowMs: 10_000 },
]
const QUICK: readonly Case[] = [
  { name: '200 streams', streams: 200, events: 8, paceMs: 500, slowMs: 0 },
  { name: '10 slow readers', streams: 10, events: 200, paceMs: 5, eventBytes: 64_000, slowMs: 3_000 },
]

/** More would measure how the gateway copes with a rush, and it turns some away when its loop lags. */
const STREAMS_BEGUN_PER_SECOND = 400
const AFTER_RATIO_MAX = 1.1
const AFTER_MS_MAX = 60_000
const BIG_BODY_BYTES = 20_000_000

const usage = `npm run bench:streams -- [options]
  --quick   fewer and shorter streams
  --write   keep the run in bench/results and write the tables and plots of bench/README.md again`

async function main(): Promise<void> {
  const values = scriptOptions(usage, { quick: { type: 'boolean' }, write: { type: 'boolean' } })
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-streams-'))
  const stops: (() => Promise<void>)[] = []
  try {
    const upstream = await startUpstream(folder)
    stops.push(upstream.stop)
    const setting = {
      upstreamUrl: upstream.url,
      upstreamPid: upstream.pid,
      folder,
      peersFolder: '',
      installPeers: false,
    }
    const rows: StreamsRow[] = []
    const notes: string[] = []
    for (const one of values.quick ? QUICK : CASES) {
      // A new gateway, so that "before" is not the "after" of another.
      const { running, call } = await start(setting, stops)
      rows.push(await holdStreams(running, call, one, notes))
      await running.stop()
    }
    const { running, call } = await start(setting, stops)
    const beside = await besideBigBodies(running, call, values.quick ? 1_000 : 5_000)
    const report: StreamsReport = { ...machineFacts(), rows, beside, verdicts: judge(rows), notes }
    if (values.write) {
      writeResult('streams', report)
      writeReadme()
    }
    print(report)
  } finally {
    await Promise.all(stops.map((stop) => stop()))
    rmSync(folder, { recursive: true, force: true })
  }
}

async function start(setting: Parameters<typeof tollgate.start>[0], stops: (() => Promise<void>)[]) {
  const folder = mkdtempSync(join(setting.folder, 'gateway-'))
  const started = await tollgate.start({ ...setting, folder })
  if ('absent' in started) throw new Error(started.absent)
  stops.push(started.running.stop)
  const call = started.running.call('chat', 'chat')
  if (!call) throw new Error('the gateway has no chat surface')
  return { running: started.running, call }
}

async function holdStreams(running: Running, call: Call, one: Case, notes: string[]): Promise<StreamsRow> {
  const streams = Math.min(one.streams, mostStreams())
  if (streams < one.streams) {
    notes.push(
      `${one.name}: ${streams}, because a process may open ${openFilesMax()} files here and a stream takes two`,
    )
  }
  // Streams and requests of every kind have run once, so that what is loaded and compiled is not counted as theirs.
  await runLoad({ ...smallRequests(running, call, 1_000), arrivalsPerSecond: 0, connections: 16 })
  await hold(running, call, { ...one, events: 5, paceMs: 20, slowMs: 0 }, 50)
  await Bun.sleep(2_000)
  const before = megabytes(running)
  const atMost = { rss: 0 }
  const totals = await hold(running, call, one, streams, atMost, () => megabytes(running))
  if (totals.firstError) notes.push(`${one.name}: first error: ${totals.firstError.slice(-200)}`)
  let after = megabytes(running)
  const giveUpAt = systemClock.monotonicMs() + AFTER_MS_MAX
  while (after > before * AFTER_RATIO_MAX && systemClock.monotonicMs() < giveUpAt) {
    await Bun.sleep(1_000)
    after = megabytes(running)
  }
  return {
    name: one.name,
    wanted: one.streams,
    streams,
    errors: totals.errors,
    firstError: totals.firstError?.slice(-140) ?? null,
    rssMegabytesBefore: before,
    rssMegabytesAt: atMost.rss,
    rssMegabytesAfter: after,
    kilobytesPerStream: ((atMost.rss - before) * 1000) / Math.max(1, totals.open),
  }
}

/** Begins them, looks at the memory while they run, and waits for the last. */
async function hold(
  running: Running,
  call: Call,
  one: Case,
  streams: number,
  atMost?: { rss: number },
  look?: () => number,
): Promise<StreamTotals> {
  const { events, paceMs, eventBytes = 0 } = one
  const shape = { surface: 'chat', events, paceMs, eventBytes, waitMs: 0, promptBytes: 1_000 } as const
  const headers = Object.entries({ ...requestHeaders('chat'), ...call.headers }).map(
    ([name, value]) => `${name}: ${value}`,
  )
  const body = requestBody(shape, call.model)
  const head = [`POST ${PATHS.chat} HTTP/1.1`, 'host: 127.0.0.1', ...headers, `content-length: ${body.length}`]
  const plan: StreamPlan = {
    port: running.port,
    request: `${head.join('\r\n')}\r\n\r\n${body}`,
    streams,
    perSecond: STREAMS_BEGUN_PER_SECOND,
    slowMs: one.slowMs,
    waitMsMax: 60_000 + 10 * one.events * one.paceMs,
  }
  const child = Bun.spawn([process.execPath, '--no-install', join(import.meta.dir, 'stream-load.ts')], {
    stdin: new Blob([JSON.stringify(plan)]),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const timer = setInterval(() => {
    if (atMost && look) atMost.rss = Math.max(atMost.rss, look())
  }, 250)
  const output = await new Response(child.stdout).text()
  clearInterval(timer)
  return JSON.parse(output.trim().split('\n').at(-1) ?? '{}') as StreamTotals
}

async function besideBigBodies(running: Running, call: Call, windowMs: number): Promise<StreamsReport['beside']> {
  const plan = smallRequests(running, call, windowMs)
  await runLoad({ ...plan, windowMs: 1_000 })
  const alone = await runLoad(plan)
  const sender = new AbortController()
  const bodies = sendBigBodies(running, call, sender.signal)
  const beside = await runLoad(plan)
  sender.abort()
  const sent = await bodies
  const row = (name: string, result: typeof alone) => ({
    name,
    p50Ms: result?.p50Ms ?? null,
    p99Ms: result?.p99Ms ?? null,
    errors: result?.errors ?? 0,
  })
  return [
    row('200 small requests per second alone', alone),
    row(`beside bodies of 20 MB (${sent.answered} answered, ${sent.refused} refused)`, beside),
  ]
}

/** One after the other, until it is stopped. */
async function sendBigBodies(running: Running, call: Call, stopped: AbortSignal) {
  const shape = { surface: 'chat', events: 0, paceMs: 1, waitMs: 0, promptBytes: BIG_BODY_BYTES } as const
  const body = requestBody(shape, call.model)
  let answered = 0
  let refused = 0
  while (!stopped.aborted) {
    const response = await fetch(`http://127.0.0.1:${running.port}${PATHS.chat}`, {
      method: 'POST',
      headers: { ...requestHeaders('chat'), ...call.headers },
      body,
    })
    await response.text()
    if (response.status === 200) answered++
    else refused++
  }
  return { answered, refused }
}

function smallRequests(running: Running, call: Call, windowMs: number): LoadPlan {
  const shape = { surface: 'chat', events: 0, paceMs: 1, waitMs: 0, promptBytes: 1_000 } as const
  return {
    port: running.port,
    path: PATHS.chat,
    headers: [{ ...requestHeaders('chat'), ...call.headers }],
    bodies: [requestBody(shape, call.model)],
    connections: 128,
    arrivalsPerSecond: 200,
    warmupMs: 500,
    windowMs,
    pid: running.pid,
    eventsExpected: 0,
  }
}

function judge(rows: readonly StreamsRow[]): string[] {
  const limits = new Map(CASES.map((one) => [one.name, one.rssMegabytesMax]))
  return rows.flatMap((row) => {
    const line = (text: string, isKept: boolean) => `${row.name}: ${text}: ${isKept ? 'kept' : 'broken'}`
    const most = limits.get(row.name)
    const ratio = row.rssMegabytesAfter / row.rssMegabytesBefore
    return [
      line(`${row.errors} errors, at most 0`, row.errors === 0),
      ...(most ? [line(`${row.rssMegabytesAt.toFixed(0)} MB, at most ${most}`, row.rssMegabytesAt <= most)] : []),
      line(`memory after ${ratio.toFixed(2)} × before, at most ${AFTER_RATIO_MAX}`, ratio <= AFTER_RATIO_MAX),
    ]
  })
}

function print(report: StreamsReport): void {
  console.log(machineLine(report))
  const whole = (value: number | null) => (value === null ? '–' : value.toFixed(0))
  console.log(
    aligned([
      ['', 'streams', 'errors', 'MB before', 'at most', 'after', 'KB per stream'],
      ...report.rows.map((row) => [
        row.name,
        ...[row.streams, row.errors, row.rssMegabytesBefore, row.rssMegabytesAt, row.rssMegabytesAfter].map(whole),
        whole(row.kilobytesPerStream),
      ]),
    ]),
  )
  console.log(
    aligned([
      ['small requests', 'p50 ms', 'p99 ms', 'errors'],
      ...report.beside.map(({ name, p50Ms, p99Ms, errors }) => [name, whole(p50Ms), whole(p99Ms), whole(errors)]),
    ]),
  )
  for (const line of [...report.verdicts, ...report.notes]) console.log(line)
}

function megabytes({ pid }: Running): number {
  return costOf(pid).rssBytes / 1_000_000
}

function openFilesMax(): number {
  return Number(Bun.spawnSync(['sh', '-c', 'ulimit -n']).stdout.toString().trim()) || 1_024
}

/** The gateway has one connection to the client and one to the upstream for each, and some files. */
function mostStreams(): number {
  return Math.floor((openFilesMax() - 100) / 2)
}

await main()
