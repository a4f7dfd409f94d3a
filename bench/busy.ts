// Whether callers notice what else the gateway does: the latency of calls at a steady rate, in short windows by turns, alone
// and beside an open console, exports, the erasure of a workspace's log, a tenant with long prompts, and all of these. The
// verdict is on the p99 of all calls of each kind, and on how long the event loop stood still.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { refuseOptions, scriptOptions } from '../test/parts/script-options.ts'
import {
  activities,
  type BusyGateway,
  begin,
  beginAll,
  type Ending,
  progress,
  startBusyGateway,
} from './busy-gateway.ts'
import { startUpstream } from './contenders/start-upstream.ts'
import { likelyRange, median } from './statistics.ts'
import { drive, percentileOf, stallSeconds, type Window } from './steady-calls.ts'

const kinds = ['alone', ...activities, 'all of these'] as const
type Kind = (typeof kinds)[number]

const usage = `npm run bench:busy -- [options]
  --rate N       calls a second (100)
  --seconds N    of each window (5)
  --rounds N     windows of each kind, in turns (12)
  --requests N   in the log at the start (100000)
  --only a,b     of: ${kinds.slice(1).join(', ')}`

/** Before each window, so that what is measured is a console that is open and not one that is being opened. */
const settleMs = 500
const warmupSeconds = 3

interface Plan {
  readonly rate: number
  readonly seconds: number
  readonly rounds: number
  readonly only: readonly Kind[]
}

/** One window of each kind. */
type Round = ReadonlyMap<Kind, Window>

async function main(): Promise<number> {
  const values = scriptOptions(usage, {
    rate: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '12' },
    requests: { type: 'string', default: '100000' },
    only: { type: 'string', default: kinds.slice(1).join(',') },
  })
  const [rate, seconds, rounds] = [Number(values.rate), Number(values.seconds), Number(values.rounds)]
  const requests = Number(values.requests)
  if (![rate, seconds, rounds, requests].every((each) => Number.isInteger(each) && each > 0)) {
    return refuseOptions('--rate, --seconds, --rounds and --requests take whole numbers above 0', usage)
  }
  const named = values.only.split(',')
  const only = kinds.filter((kind) => kind === 'alone' || named.includes(kind))
  if (only.length !== named.length + 1) return refuseOptions('--only takes names from the list below', usage)
  const plan = { rate, seconds, rounds, only }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-busy-'))
  const upstream = await startUpstream(folder)
  try {
    // One of its own, and one of all activities, in each round.
    const gateway = await startBusyGateway(folder, { upstreamUrl: upstream.url, requests, erasures: 2 * rounds })
    try {
      return print(await measure(gateway, plan), plan)
    } finally {
      await gateway.stop()
    }
  } finally {
    await upstream.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(gateway: BusyGateway, { rate, seconds, rounds, only }: Plan): Promise<readonly Round[]> {
  const measured: Round[] = []
  const { model } = gateway
  await drive(gateway, { model, rate, seconds: warmupSeconds })
  for (let round = 1; round <= rounds; round++) {
    const windows = new Map<Kind, Window>()
    // Whoever goes later meets a longer log; each kind does so in turn.
    const start = round % only.length
    for (const kind of [...only.slice(start), ...only.slice(0, start)]) {
      progress(`round ${round} of ${rounds}: ${kind}`)
      const end = beginKind(gateway, kind)
      await Bun.sleep(settleMs)
      windows.set(kind, await drive(gateway, { model, rate, seconds }))
      await end()
    }
    measured.push(windows)
  }
  progress('')
  return measured
}

function beginKind(gateway: BusyGateway, kind: Kind): Ending {
  if (kind === 'alone') return async () => {}
  return kind === 'all of these' ? beginAll(gateway) : begin(gateway, kind)
}

function print(rounds: readonly Round[], { rate, seconds, only }: Plan): number {
  const windowsOf = (some: readonly Round[], kind: Kind): Window[] => some.flatMap((round) => round.get(kind) ?? [])
  console.log(
    `${rate} calls a second with prompts of 1 KB, ${rounds.length} windows of ${seconds} s of each kind, in turns\n`,
  )
  console.log(
    `| beside | calls | p50 ms | p99 ms | × alone | nine of ten times between | CPU of the gateway | stalls above ${stallSeconds * 1000} ms |`,
  )
  console.log('|---|---|---|---|---|---|---|---|')
  for (const kind of only) {
    const windows = windowsOf(rounds, kind)
    const ratio = (some: readonly Round[]): number =>
      percentileOf(windowsOf(some, kind), 99) / percentileOf(windowsOf(some, 'alone'), 99)
    const range = likelyRange(rounds, ratio).map((each) => each.toFixed(2))
    const figures = [
      windows.reduce((sum, { taken }) => sum + taken.length, 0),
      percentileOf(windows, 50).toFixed(2),
      percentileOf(windows, 99).toFixed(2),
      ratio(rounds).toFixed(2),
      kind === 'alone' ? '' : range.join(' and '),
      `${median(windows.map(({ cpuPercent }) => cpuPercent)).toFixed(1)} %`,
      windows.reduce((sum, { stalls }) => sum + stalls, 0),
    ]
    console.log(`| ${[kind, ...figures].join(' | ')} |`)
  }
  // The figure if there were nothing to find.
  const alone = windowsOf(rounds, 'alone')
  const half = (rest: number) =>
    percentileOf(
      alone.filter((_, at) => at % 2 === rest),
      99,
    )
  console.log(`\nEvery other window alone against the rest: ${(half(0) / half(1)).toFixed(2)} ×`)
  const all = rounds.flatMap((round) => [...round.values()])
  const failed = all.reduce((sum, window) => sum + window.failed, 0)
  const failure = all.find((window) => window.failed > 0)?.firstFailure
  console.log(`Calls that failed: ${failed}${failure === undefined ? '' : ` (${failure})`}`)
  const stalls = all.reduce((sum, window) => sum + window.stalls, 0)
  return stalls === 0 && failed === 0 ? 0 : 1
}

process.exitCode = await main()
