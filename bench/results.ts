// What is kept of a run: one JSON file for each of the three programs in bench/results, with the machine, the versions and
// the date. Tables and plots are made from these files alone, so that they can be drawn again without measuring.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import type { Verdict } from './limits.ts'
import type { Refusal } from './probe.ts'
import type { Row } from './summary.ts'

export const RESULTS_FOLDER = join(import.meta.dir, 'results')

export interface MachineFacts {
  /** YYYY-MM-DD. */
  readonly date: string
  readonly machine: string
  readonly bun: string
  readonly tollgate: string
}

export interface RequestsReport extends MachineFacts {
  readonly method: string
  readonly versions: readonly string[]
  /** Contenders that did not run, and why. */
  readonly absent: readonly string[]
  readonly cells: readonly string[]
  /** NaN in memory is null in the file. */
  readonly rows: readonly Row[]
  readonly refusals: readonly Refusal[]
  /** Lines about the first requests after a start; absent in files of earlier runs. */
  readonly cold?: readonly string[]
  readonly verdicts: readonly Verdict[]
}

export interface StreamsRow {
  readonly name: string
  readonly wanted: number
  readonly streams: number
  readonly errors: number
  readonly firstError: string | null
  readonly rssMegabytesBefore: number
  readonly rssMegabytesAt: number
  readonly rssMegabytesAfter: number
  readonly kilobytesPerStream: number
}

export interface StreamsReport extends MachineFacts {
  readonly rows: readonly StreamsRow[]
  /** Small requests alone and beside a big body. */
  readonly beside: readonly {
    readonly name: string
    readonly p50Ms: number | null
    readonly p99Ms: number | null
    readonly errors: number
  }[]
  readonly verdicts: readonly string[]
  readonly notes: readonly string[]
}

export interface GrowthCurve {
  readonly name: string
  readonly unit: string
  /** The most that the largest may cost of the smallest; undefined where growth is in the nature of the thing. */
  readonly most?: number
  readonly points: readonly { readonly size: number; readonly cpuMicros: number; readonly ratio: number }[]
}

export interface GrowthReport extends MachineFacts {
  readonly method: string
  readonly curves: readonly GrowthCurve[]
}

interface Reports {
  readonly requests: RequestsReport
  readonly streams: StreamsReport
  readonly growth: GrowthReport
}

export function machineFacts(): MachineFacts {
  const manifest = JSON.parse(readFileSync(join(import.meta.dir, '..', 'package.json'), 'utf8')) as { version: string }
  const model = cpus()[0]?.model.trim() ?? 'unknown processor'
  return {
    date: new Date(systemClock.now()).toISOString().slice(0, 10),
    machine: `${cpus().length} × ${model}, Linux ${release().replace(/[-+].*/, '')}`,
    bun: Bun.version,
    tollgate: manifest.version,
  }
}

export function machineLine({ date, machine, bun, tollgate }: MachineFacts): string {
  return `${date}, ${machine}, Bun ${bun}, Tollgate ${tollgate}`
}

export function writeResult<Name extends keyof Reports>(name: Name, report: Reports[Name]): void {
  mkdirSync(RESULTS_FOLDER, { recursive: true })
  const text = JSON.stringify(report, (_key, value) => (typeof value === 'number' ? rounded(value) : value), 1)
  writeFileSync(join(RESULTS_FOLDER, `${name}.json`), `${text}\n`)
}

/** Undefined where it was never measured. */
export function readResult<Name extends keyof Reports>(name: Name): Reports[Name] | undefined {
  const path = join(RESULTS_FOLDER, `${name}.json`)
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Reports[Name]) : undefined
}

/** Four digits say more than the measurement knows. */
function rounded(value: number): number | null {
  return Number.isFinite(value) ? Number(value.toPrecision(4)) : null
}
