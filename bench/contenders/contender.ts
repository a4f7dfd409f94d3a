// What a contender is to the benchmark: a name, a way to start it against the fake upstream, and how to call it.

import type { Surface } from '../cells.ts'

export interface Setting {
  /** `http://127.0.0.1:PORT`, without a path. */
  readonly upstreamUrl: string
  readonly upstreamPid: number
  /** A folder of this run for logs, configuration and data; removed afterwards. */
  readonly folder: string
  /** Install programs that are not part of this repository. */
  readonly peers: boolean
}

export interface Running {
  /** Root of the process tree whose CPU and memory count. */
  readonly pid: number
  readonly port: number
  /** Undefined where the contender does not offer the surface. */
  call(surface: Surface): Call | undefined
  stop(): Promise<void>
}

export interface Call {
  readonly model: string
  /** Beside content type and dialect version, which the cell sets. */
  readonly headers: Readonly<Record<string, string>>
  /** The headers of further callers; connections take turns with them. */
  readonly otherHeaders?: readonly Readonly<Record<string, string>>[]
  /** Events at the borders of a stream that the upstream's dialect has and the caller's has not. */
  readonly eventsFewer?: number
}

export type Start = { readonly running: Running; readonly version: string } | { readonly absent: string }

export interface Contender {
  readonly name: string
  /** `streams` for one that differs from another contender in streams alone. */
  readonly cells: 'all' | 'streams'
  start(setting: Setting): Promise<Start>
}
