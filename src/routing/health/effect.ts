// What each class of fault means for health: one table. Who is to blame decides what is touched, so that one bad key
// never ejects a provider, one bad provider never parks a key, and one bad request touches nothing.

import type { FaultClass } from '../fault.ts'

export type Effect =
  /** Counts against the model at this endpoint. */
  'fault' | 'park the credential at this model' | 'park the credential' | 'disable the route' | 'none'

export const effects = {
  unreachable: 'fault',
  broken: 'fault',
  'timed out': 'fault',
  failing: 'fault',
  garbled: 'fault',
  throttled: 'park the credential at this model',
  'refused our credential': 'park the credential',
  'out of quota': 'park the credential',
  'does not know the model': 'disable the route',
  'lacks what was asked for': 'none',
  redirecting: 'fault',
  'too large': 'none',
  "caller's fault": 'none',
  'cannot carry the request': 'none',
  'had too little time': 'none',
  'client left': 'none',
  'shut down': 'none',
  superseded: 'none',
} as const satisfies Record<FaultClass, Effect>

/** By these a provider says that it has too much to do: a fault, and half the weight for a while. */
export const overloadStatuses: ReadonlySet<number | undefined> = new Set([503, 529])
