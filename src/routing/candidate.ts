// A route chosen for a request: where it would go and in which dialect.

import type { Route } from '../catalog/model.ts'
import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import type { UpstreamDialect } from '../dialects/dialect.ts'
import type { Endpoint, Provider } from '../providers/provider.ts'

export interface Candidate {
  readonly route: Route
  readonly provider: Provider
  readonly endpoint: Endpoint
  /** The dialect the endpoint speaks. */
  readonly dialect: UpstreamDialect
  /** What the model at this endpoint accepts. */
  readonly rules: TargetRules
}
