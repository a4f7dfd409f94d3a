// How many upstream calls run at a time. Bun takes the number from its environment before the program starts, and runs
// 256 without it: the 257th would wait unseen. This file only knows the variable; who starts again is the entry.

import { type Environment, variable } from './references.ts'

/** The launcher sets it, bin/tollgate; so do the files in deploy. */
export const upstreamCallsVariable = 'BUN_CONFIG_MAX_HTTP_REQUESTS'
const upstreamCalls = '65000'

/** What to start again with; undefined = somebody has decided already, and their number holds. */
export function environmentWithRoom(env: Environment): Record<string, string> | undefined {
  if (variable(env, upstreamCallsVariable) !== undefined) return undefined
  const set = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  return { ...Object.fromEntries(set), [upstreamCallsVariable]: upstreamCalls }
}
