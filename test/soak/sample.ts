// What a gateway occupies at one moment, read from the system, from the probe inside it and from its own metrics.

import { readdirSync, readFileSync } from 'node:fs'
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
  const probe = await askProbe(source.probePath, question)
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

function askProbe(path: string, question: ProbeQuestion): Promise<ProbeReading> {
  const answer = Promise.withResolvers<ProbeReading>()
  let text = ''
  void Bun.connect({
    unix: path,
    socket: {
      open: (socket) => void socket.write(`${question}\n`),
      data: (_, bytes) => {
        text += bytes.toString('utf8')
      },
      close: () => {
        if (text.endsWith('\n')) answer.resolve(JSON.parse(text) as ProbeReading)
        else answer.reject(new Error(`the probe broke off: ${text}`))
      },
      error: (_, error) => answer.reject(error),
    },
  }).catch(answer.reject)
  return answer.promise
}
