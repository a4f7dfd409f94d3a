// Reads the resources of a gateway at one moment from the system, from the probe inside it and from its own metrics.

import { readdirSync, readFileSync } from 'node:fs'
import { askSocket } from '../parts/ask-socket.ts'
import type { ProbeQuestion, ProbeReading } from './probe.ts'
import type { Manager } from './tenants.ts'

export interface Sample {
  /** Since the traffic began. */
  readonly second: number
  readonly rssBytes: number
  /** Without mapped files. */
  readonly anonymousBytes: number
  readonly descriptors: number
  readonly threads: number
  readonly openHolds: number
  readonly activeStreams: number
  readonly probe: ProbeReading
}

export interface SampleSource {
  readonly pid: number
  readonly manager: Manager
  readonly probePath: string
}

export async function takeSample(source: SampleSource, second: number, question: ProbeQuestion): Promise<Sample> {
  const metrics = await source.manager.metrics()
  const probe = await askSocket<ProbeReading>(source.probePath, question)
  const status = readFileSync(`/proc/${source.pid}/status`, 'utf8')
  const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? Number.NaN)
  return {
    second,
    rssBytes: kibibytes('VmRSS') * 1024,
    anonymousBytes: kibibytes('RssAnon') * 1024,
    descriptors: readdirSync(`/proc/${source.pid}/fd`).length,
    threads: kibibytes('Threads'),
    openHolds: metrics.get('tollgate_open_holds') ?? Number.NaN,
    activeStreams: metrics.get('tollgate_active_streams') ?? Number.NaN,
    probe,
  }
}
