// A route chosen for a request: where it would go, in which dialect, and on whose credential.

import type { Route } from '../catalog/model.ts'
import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import type { UpstreamDialect } from '../dialects/dialect.ts'
import type { Failure } from '../kernel/failure.ts'
import type { Endpoint, Provider } from '../providers/provider.ts'
import type { RouteKey } from './health/route-key.ts'

export interface Candidate {
  readonly route: Route
  readonly provider: Provider
  readonly endpoint: Endpoint
  /** The dialect the endpoint speaks. */
  readonly dialect: UpstreamDialect
  /** What the model at this endpoint accepts. */
  readonly rules: TargetRules
  /** Why it is this endpoint, where it is not the one that the caller's dialect suggests. */
  readonly why?: string
  /** Names it for its health. */
  readonly key: RouteKey
  /** On the workspace's own credential: the provider bills the workspace, not the operator. */
  readonly isOwn: boolean
  /** It is not asked at all, and no other credential in its place: what the caller is told instead. */
  readonly refusal?: Failure
}
