// The process itself: memory, processor time, and how late its event loop is. The names without a prefix of ours are
// those that every Prometheus client uses.

import type { Clock } from '../../kernel/clock.ts'
import { type Every, onTimer } from './every.ts'
import type { MetricRegistry } from './registry.ts'

export interface ProcessFacts {
  readonly clock: Clock
  readonly version: string
  readonly engine: string
  readonly every?: Every
}

const tickMs = 100
const delayBounds = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1]

/** Answers with how to stop measuring. */
export function defineProcessMetrics(registry: MetricRegistry, facts: ProcessFacts): () => void {
  const startedAt = facts.clock.now()
  registry.ask({
    name: 'process_resident_memory_bytes',
    type: 'gauge',
    help: 'Memory that the process occupies.',
    read: () => process.memoryUsage.rss(),
  })
  registry.ask({
    name: 'process_cpu_seconds_total',
    type: 'counter',
    help: 'Processor time of the process, all threads.',
    read: () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    },
  })
  registry.ask({
    name: 'process_start_time_seconds',
    type: 'gauge',
    help: 'When the process started, in seconds since 1970.',
    read: () => startedAt / 1000,
  })
  registry.ask({
    name: 'tollgate_build_info',
    type: 'gauge',
    help: 'Always 1; the labels say what runs.',
    labels: ['version', 'engine'],
    read: () => [{ values: [facts.version, facts.engine], value: 1 }],
  })
  return measureDelay(registry, facts)
}

/** How much later than asked a timer fires: so long everything else waited too. */
function measureDelay(registry: MetricRegistry, { clock, every = onTimer }: ProcessFacts): () => void {
  const delay = registry
    .histogram({
      name: 'tollgate_event_loop_delay_seconds',
      help: 'How late a timer of the event loop was, sampled ten times a second.',
      bounds: delayBounds,
    })
    .find()
  let lastMs = clock.monotonicMs()
  return every(tickMs, () => {
    const nowMs = clock.monotonicMs()
    delay.observe(Math.max(0, nowMs - lastMs - tickMs) / 1000)
    lastMs = nowMs
  })
}
