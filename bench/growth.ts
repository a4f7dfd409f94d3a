// Whether a request costs more where there is much of something: CPU per request as keys, models, transfers, log rows and
// the conversation grow, each as a ratio to its smallest. `npm run bench:growth`; `--quick` stops at thousands, `--write`
// keeps it in bench/results.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { refuseOptions, scriptOptions } from '../test/parts/script-options.ts'
import { PATHS, requestHeaders } from './cells.ts'
import { startUpstream } from './contenders/start-upstream.ts'
import { type Grown, startGrown } from './grown-gateway.ts'
import { type GrowthCurve, type GrowthReport, machineFacts, machineLine, writeResult } from './results.ts'
import { runLoad } from './run-load.ts'
import { median } from './statistics.ts'
import { writeReadme } from './write-readme.ts'

interface Dimension {
  readonly name: string
  readonly unit: string
  readonly sizes: readonly number[]
  readonly most?: number
  /** The content of a gateway of this size; ten keys and ten models by default. */
  readonly has: (size: number) => { keys?: number; models?: number; transfers?: number; logRows?: number }
  /** How many of them the requests use in turn, and how long their conversation is; ten, ten and one. */
  readonly uses?: (size: number) => { keys?: number; models?: number; turns?: number }
}

const FLAT = 1.1
/** A row of the log goes to a place of its key, and so does the sum of its hour. */
const ALL_KEYS = 1.2

const DIMENSIONS: readonly Dimension[] = [
  { name: 'keys', unit: 'keys', sizes: [10, 1_000, 10_000, 100_000], most: FLAT, has: (keys) => ({ keys }) },
  {
    name: 'keys, all in use',
    unit: 'keys',
    sizes: [10, 1_000, 10_000, 100_000],
    most: ALL_KEYS,
    has: (keys) => ({ keys }),
    uses: (keys) => ({ keys }),
  },
  {
    name: 'models',
    unit: 'models',
    sizes: [10, 100, 1_000, 5_000],
    most: FLAT,
    has: (models) => ({ models }),
    uses: (models) => ({ models }),
  },
  {
    name: 'transfers',
    unit: 'rows',
    sizes: [0, 10_000, 100_000, 1_000_000, 5_000_000],
    most: FLAT,
    has: (transfers) => ({ transfers }),
  },
  {
    name: 'log rows',
    unit: 'rows',
    sizes: [0, 10_000, 100_000, 1_000_000],
    most: FLAT,
    has: (logRows) => ({ logRows }),
  },
  {
    name: 'conversation',
    unit: 'turns of 200 bytes',
    sizes: [1, 10, 100, 1_000],
    has: () => ({}),
    uses: (turns) => ({ turns }),
  },
]

interface Options {
  readonly rounds: number
  readonly windowMs: number
  readonly largest: number
}

const usage = `npm run bench:growth -- [options]
  --only NAME   ${DIMENSIONS.map(({ name }) => `"${name}"`).join(' or ')}; more than once for several
  --rounds N    rounds over all sizes (5)
  --seconds N   length of one measurement (2)
  --quick       1 round of half a second, up to thousands
  --write       keep the run in bench/results and write the tables and plots of bench/README.md again`

async function main(): Promise<void> {
  const values = scriptOptions(usage, {
    quick: { type: 'boolean' },
    write: { type: 'boolean' },
    only: { type: 'string', multiple: true },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
  })
  const options: Options = {
    rounds: Number(values.rounds ?? (values.quick ? 1 : 5)),
    windowMs: Number(values.seconds ?? (values.quick ? 0.5 : 2)) * 1000,
    largest: values.quick ? 10_000 : Number.POSITIVE_INFINITY,
  }
  const wanted = values.only
  const unknown = wanted?.find((name) => !DIMENSIONS.some((dimension) => dimension.name === name))
  if (unknown !== undefined) refuseOptions(`there is no ${unknown}`, usage)
  if (!(options.rounds >= 1 && options.windowMs >= 100)) refuseOptions('--rounds from 1, --seconds from 0.1', usage)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-growth-'))
  const upstream = await startUpstream(folder)
  try {
    const curves: GrowthCurve[] = []
    for (const dimension of DIMENSIONS) {
      if (wanted && !wanted.includes(dimension.name)) continue
      const curve = await measureDimension(dimension, folder, upstream.url, options)
      curves.push(curve)
      print(curve)
    }
    const method = `medians of ${options.rounds} rounds of ${options.windowMs / 1000} s in turns, 16 connections, byte lane`
    const report: GrowthReport = { ...machineFacts(), method, curves }
    console.log(`${machineLine(report)}; ${method}`)
    if (values.write) {
      writeResult('growth', report)
      writeReadme()
    }
  } finally {
    await upstream.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** One gateway for each size, all up at a time, measured in turns. */
async function measureDimension(
  dimension: Dimension,
  folder: string,
  upstreamUrl: string,
  { rounds, windowMs, largest }: Options,
): Promise<GrowthCurve> {
  const sizes = dimension.sizes.filter((size) => size <= largest)
  const gateways: Measured[] = []
  const own = mkdtempSync(join(folder, 'dimension-'))
  try {
    for (const size of sizes) {
      const has = { keys: 10, models: 10, transfers: 0, logRows: 0, ...dimension.has(size) }
      const grown = await startGrown(mkdtempSync(join(own, 'size-')), upstreamUrl, has)
      const uses = { keys: 10, models: 10, turns: 1, ...dimension.uses?.(size) }
      gateways.push({ size, grown, uses, turnsTaken: 0, figures: [] })
    }
    // The first round, and the first use of each key, are thrown away: what is compiled and kept then is not a matter of size.
    // Every gateway gets as many requests, because the compiler needs tens of thousands.
    const turnsFirst = Math.max(...gateways.map(({ uses }) => uses.keys))
    for (const gateway of gateways) {
      while (gateway.turnsTaken < turnsFirst) await measure(gateway, windowMs)
    }
    for (let round = 0; round <= rounds; round++) {
      for (const gateway of gateways) {
        const figure = await measure(gateway, windowMs)
        if (round > 0) gateway.figures.push(figure)
      }
    }
  } finally {
    for (const { grown } of gateways) await grown.launched.stop()
    rmSync(own, { recursive: true, force: true })
  }
  const smallest = gateways[0]?.figures ?? []
  const points = gateways.map(({ size, figures }) => ({
    size,
    cpuMicros: median(figures),
    // Within each round, so that a slow moment of the machine weighs on both sides.
    ratio: median(figures.map((cpu, round) => cpu / (smallest[round] ?? Number.NaN))),
  }))
  const { name, unit, most } = dimension
  return { name, unit, points, ...(most === undefined ? {} : { most }) }
}

interface Measured {
  readonly size: number
  readonly grown: Grown
  readonly uses: Uses
  /** So that each measurement goes on with the keys after those of the one before. */
  turnsTaken: number
  readonly figures: number[]
}

interface Uses {
  readonly keys: number
  readonly models: number
  readonly turns: number
}

/** On a machine that is busy with other things the gateway turns requests away for some seconds; that is another question. */
const REFUSED_WAIT_MS = 6_000
const ATTEMPTS = 5

/** CPU microseconds of the gateway per request. */
async function measure(measured: Measured, windowMs: number): Promise<number> {
  let refusal = ''
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const result = await load(measured, windowMs)
    if (result && result.errors === 0 && result.requests > 0) {
      measured.turnsTaken += result.requests
      return result.cpuMicros / result.requests
    }
    refusal = result?.firstError ?? 'not one request was answered'
    await Bun.sleep(REFUSED_WAIT_MS)
  }
  throw new Error(refusal)
}

function load({ grown: { launched, keys }, uses, turnsTaken }: Measured, windowMs: number) {
  return runLoad({
    port: launched.port,
    path: PATHS.chat,
    headers: keys.slice(0, uses.keys).map((key) => ({ ...requestHeaders('chat'), authorization: `Bearer ${key}` })),
    bodies: Array.from({ length: uses.models }, (_, at) => conversation(`bench/model-${at}`, uses.turns)),
    turnsTaken,
    connections: 16,
    arrivalsPerSecond: 0,
    warmupMs: 300,
    windowMs,
    pid: launched.pid,
    eventsExpected: 0,
  })
}

function conversation(model: string, turns: number): string {
  const said = 'The quick brown fox jumps over the lazy dog. '.repeat(4)
  const messages = Array.from({ length: turns * 2 - 1 }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: said,
  }))
  return JSON.stringify({ model, max_tokens: 256, messages })
}

function print({ name, points, most }: GrowthCurve): void {
  const cells = points.map(({ size, cpuMicros, ratio }) => `${size}: ${cpuMicros.toFixed(0)} µs ${ratio.toFixed(2)} ×`)
  const last = points.at(-1)?.ratio ?? Number.NaN
  const verdict = most === undefined ? '' : ` · at most ${most}: ${last <= most ? 'kept' : 'broken'}`
  console.log(`${name.padEnd(18)} ${cells.join(' · ')}${verdict}`)
}

await main()
