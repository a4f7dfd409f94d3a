// What callers feel of a gateway at work: calls at a steady rate, and the time to the first token of streams, while the
// console is open, exports run, a workspace is erased and another tenant sends long prompts. Beside it, in turns, the
// gateway at rest, the bare proxies, and the upstream itself: what a contender takes longer than that, it has added.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { refuseOptions, scriptOptions } from '../test/parts/script-options.ts'
import { type BusyGateway, beginAll, type Ending, startBusyGateway } from './busy-gateway.ts'
import { type Cell, PATHS, requestBody, requestHeaders } from './cells.ts'
import { bare, bareDurable } from './contenders/bare.ts'
import type { Contender, Running } from './contenders/contender.ts'
import { direct } from './contenders/direct.ts'
import { startUpstream } from './contenders/start-upstream.ts'
import { runLoad } from './run-load.ts'
import { likelyRange, median } from './statistics.ts'
import { readStalls, stallSeconds } from './steady-calls.ts'

const usage = `npm run bench:felt -- [options]
  --rate N       calls a second (1000), and a tenth as many streams
  --seconds N    of each window (5)
  --rounds N     windows of each kind, in turns (9)
  --requests N   in the log at the start (100000)`

const warmSeconds = 8
/** Before each window. */
const settleMs = 1_000
const connections = 512
const addedMax = 2
const firstTokenMax = 1.5

type Who = 'direct' | 'bare' | 'bare-durable' | 'at rest' | 'at work'
/** Milliseconds by who was called. */
type Round = ReadonlyMap<Who, { readonly p50: number; readonly p99: number }>

interface Target {
  readonly port: number
  readonly pid: number
  readonly model: string
  readonly headers: Readonly<Record<string, string>>
  begin(): Ending
}

async function main(): Promise<number> {
  const values = scriptOptions(usage, {
    rate: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '9' },
    requests: { type: 'string', default: '100000' },
  })
  const [rate, seconds, rounds] = [Number(values.rate), Number(values.seconds), Number(values.rounds)]
  const requests = Number(values.requests)
  if (![rate, seconds, rounds, requests].every((each) => Number.isInteger(each) && each > 0)) {
    return refuseOptions('all options take whole numbers above 0', usage)
  }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-felt-'))
  const upstream = await startUpstream(folder)
  const running: { stop(): Promise<void> }[] = [upstream]
  try {
    const setting = {
      ...{ upstreamUrl: upstream.url, upstreamPid: upstream.pid, folder },
      ...{ peersFolder: '', installPeers: false },
    }
    const floor = async (contender: Contender): Promise<Target> => {
      const started = await contender.start(setting)
      if ('absent' in started) throw new Error(`${contender.name}: ${started.absent}`)
      running.push(started.running)
      return targetOf(started.running)
    }
    const floors = {
      direct: await floor(direct),
      bare: await floor(bare),
      'bare-durable': await floor(bareDurable),
    }
    // Of both kinds of windows, one workspace is erased in each.
    const gateway = await startBusyGateway(folder, { upstreamUrl: upstream.url, requests, erasures: 2 * rounds })
    running.push(gateway)
    const { pid, model } = gateway
    const ours = {
      pid,
      model,
      port: Number(new URL(gateway.url).port),
      headers: { authorization: `Bearer ${gateway.key}` },
    }
    const targets: Readonly<Record<Who, Target>> = {
      ...floors,
      'at rest': { ...ours, begin: atRest },
      'at work': { ...ours, begin: () => beginAll(gateway) },
    }
    return await compare(targets, gateway, { rate, seconds, rounds })
  } finally {
    for (const each of running.reverse()) await each.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const atRest = (): Ending => async () => {}

function targetOf({ port, pid, call }: Running): Target {
  const { model = '', headers = {} } = call('chat', 'chat') ?? {}
  return { port, pid, model, headers, begin: atRest }
}

async function compare(
  targets: Readonly<Record<Who, Target>>,
  gateway: BusyGateway,
  { rate, seconds, rounds }: { readonly rate: number; readonly seconds: number; readonly rounds: number },
): Promise<number> {
  const shape = { surface: 'chat', provider: 'chat', waitMs: 0, promptBytes: 1_000, events: 0, paceMs: 0 } as const
  const streamed = { ...shape, events: 50, paceMs: 2 } as const
  const stallsBefore = await readStalls(gateway.url, gateway.token)
  const whole = await measure(targets, { ...shape, rate, seconds, rounds })
  const streams = await measure(targets, { ...streamed, rate: rate / 10, seconds, rounds })
  const stalls = (await readStalls(gateway.url, gateway.token)) - stallsBefore
  const added = report(`${rate} calls a second, milliseconds`, whole, 'bare-durable')
  const first = report(`\n${rate / 10} streams a second, milliseconds to the first token`, streams, 'bare')
  console.log(`\nAdded p99 at work: ${added.toFixed(2)} × bare-durable, at most ${addedMax}`)
  console.log(`Added p99 to the first token at work: ${first.toFixed(2)} × bare, at most ${firstTokenMax}`)
  console.log(`Samples of the event loop later than ${stallSeconds * 1000} ms: ${stalls}, at most 0`)
  return added <= addedMax && first <= firstTokenMax && stalls === 0 ? 0 : 1
}

interface Plan extends Pick<Cell, 'surface' | 'events' | 'paceMs' | 'waitMs' | 'promptBytes'> {
  readonly rate: number
  readonly seconds: number
  readonly rounds: number
}

async function measure(targets: Readonly<Record<Who, Target>>, plan: Plan): Promise<readonly Round[]> {
  const all = Object.keys(targets) as Who[]
  const measured: Round[] = []
  // Their code is compiled while it runs, and takes several times as long before.
  for (const target of Object.values(targets))
    await window({ ...target, begin: atRest }, { ...plan, seconds: warmSeconds })
  for (let round = 1; round <= plan.rounds; round++) {
    const start = round % all.length
    const windows = new Map<Who, { p50: number; p99: number }>()
    for (const who of [...all.slice(start), ...all.slice(0, start)]) windows.set(who, await window(targets[who], plan))
    measured.push(windows)
  }
  return measured
}

async function window({ port, pid, model, headers, begin }: Target, plan: Plan): Promise<{ p50: number; p99: number }> {
  const end = begin()
  const result = await runLoad({
    ...{ port, pid, path: PATHS[plan.surface], connections },
    ...{ headers: [{ ...requestHeaders(plan.surface), ...headers }], bodies: [requestBody(plan, model)] },
    ...{
      arrivalsPerSecond: plan.rate,
      warmupMs: settleMs,
      windowMs: plan.seconds * 1_000,
      eventsExpected: plan.events,
    },
  })
  await end()
  if (!result || result.errors > 0 || result.p50Ms === null || result.p99Ms === null)
    throw new Error(`calls failed: ${result?.firstError ?? 'no answer'}`)
  return { p50: result.p50Ms, p99: result.p99Ms }
}

/** Prints a table; returns what the gateway at work adds at p99, as a multiple of what the floor adds. */
function report(title: string, rounds: readonly Round[], floor: Who): number {
  console.log(`${title}: medians of ${rounds.length} windows\n`)
  console.log(`| who | p50 | p99 | added p99 | × ${floor} | nine of ten times between |`)
  console.log('|---|---|---|---|---|---|')
  const of = (some: readonly Round[], who: Who, rank: 'p50' | 'p99') =>
    median(some.map((round) => round.get(who)?.[rank] ?? Number.NaN))
  const added = (some: readonly Round[], who: Who) => of(some, who, 'p99') - of(some, 'direct', 'p99')
  const ratio = (who: Who) => (some: readonly Round[]) => added(some, who) / added(some, floor)
  for (const who of rounds[0]?.keys() ?? []) {
    const range = likelyRange(rounds, ratio(who)).map((each) => each.toFixed(2))
    const figures = [of(rounds, who, 'p50'), of(rounds, who, 'p99'), added(rounds, who), ratio(who)(rounds)]
    console.log(`| ${[who, ...figures.map((figure) => figure.toFixed(2)), range.join(' and ')].join(' | ')} |`)
  }
  return ratio('at work')(rounds)
}

process.exitCode = await main()
