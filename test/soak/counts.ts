// Messages and counters of the processes of a soak. Those run when they are loaded, so this is a separate file.

export interface TrafficPlan {
  readonly url: string
  readonly callsPerSecond: number
  readonly leaveShare: number
  /** API keys, each as often as it is to be used. */
  readonly keys: readonly string[]
}

export interface TrafficCounts {
  readonly asked: number
  readonly running: number
  /** Not sent because too many were running: the gateway, or this machine, could not keep up. */
  readonly skipped: number
  /** By how it ended: complete, left, failed (an error event after content), cut, a status, or no answer. */
  readonly ends: Readonly<Record<string, number>>
  /** The first answers that must not be. */
  readonly odd: readonly string[]
}

/** Without those that a gateway short of time turned away, to come back in a moment. */
export function letIn({ asked, ends }: Pick<TrafficCounts, 'asked' | 'ends'>): number {
  return asked - (ends['status 503'] ?? 0)
}

export interface ProviderCounts {
  readonly calls: number
  readonly faults: number
}
