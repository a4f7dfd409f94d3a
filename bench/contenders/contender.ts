// A contender of the benchmark: a name, a way to start it against the fake upstream, and how to call it.

import type { Surface } from '../cells.ts'

export interface Setting {
  /** `http://127.0.0.1:PORT`, without a path. */
  readonly upstreamUrl: string
  readonly upstreamPid: number
  /** A folder of this run for logs, configuration and data; removed afterwards. */
  readonly folder: string
  /** Where other people's gateways are installed, one folder each; kept between runs. */
  readonly peersFolder: string
  /** Download the ones that are missing there. */
  readonly installPeers: boolean
}

export interface Running {
  /** Root of the process tree whose CPU and memory count. */
  readonly pid: number
  readonly port: number
  /** Undefined where the contender does not offer the surface, or not over an upstream of that dialect. */
  call(surface: Surface, provider: Surface): Call | undefined
  stop(): Promise<void>
}

export interface Call {
  readonly model: string
  /** The dialect's own where nothing is said. */
  readonly path?: string
  /** Beside content type and dialect version, which the cell sets. */
  readonly headers: Readonly<Record<string, string>>
  /** The headers of further callers; requests take turns with them. */
  readonly otherHeaders?: readonly Readonly<Record<string, string>>[]
}

export type Start = { readonly running: Running; readonly version: string } | { readonly absent: string }

export interface Contender {
  readonly name: string
  /** `streams` for one that differs from another contender in streams alone. */
  readonly cells: 'all' | 'streams'
  /** Measured without being named by --only or asked for by --all. */
  readonly byDefault: boolean
  start(setting: Setting): Promise<Start>
}
