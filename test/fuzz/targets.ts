// Everything that is fuzzed, by name.

import { authTarget } from './auth-target.ts'
import { configTarget } from './config-target.ts'
import { httpConnectionTarget } from './http-connection-target.ts'
import { httpTargets } from './http-target.ts'
import { jsonTargets } from './json-targets.ts'
import { managementTarget } from './management-target.ts'
import { requestTargets } from './request-targets.ts'
import { sseTarget } from './sse-target.ts'
import { streamTargets } from './stream-targets.ts'
import type { FuzzTarget } from './target.ts'

export const targets: readonly FuzzTarget[] = [
  ...jsonTargets,
  ...httpTargets,
  httpConnectionTarget,
  sseTarget,
  ...requestTargets,
  ...streamTargets,
  authTarget,
  configTarget,
  managementTarget,
]
