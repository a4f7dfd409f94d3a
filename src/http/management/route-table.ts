// Every call of the management API. A new one is a row in a …-routes file; a test names the documents that lack it.

import type { Database } from '../../store/database.ts'
import { type CheckoutDependencies, checkoutRoutes } from './checkout-routes.ts'
import { type ConfigDependencies, configRoutes } from './config-routes.ts'
import { type CorrectionDependencies, correctionRoutes } from './correction-routes.ts'
import { type CredentialDependencies, credentialRoutes } from './credential-routes.ts'
import { type KeyDependencies, keyRoutes } from './key-routes.ts'
import { type LimitDependencies, limitRoutes } from './limit-routes.ts'
import { type OfferDependencies, offerRoutes } from './offer-routes.ts'
import { openApiDocument, openApiRoute } from './open-api.ts'
import { type PlanDependencies, planRoutes } from './plan-routes.ts'
import { type PriceDependencies, priceRoutes } from './price-routes.ts'
import { type ProjectDependencies, projectRoutes } from './project-routes.ts'
import { type ProviderDependencies, providerRoutes } from './provider-routes.ts'
import { requestFileRoutes } from './request-file-routes.ts'
import { type ObservationDependencies, observationRoutes } from './request-routes.ts'
import type { Route } from './route.ts'
import { type StatsDependencies, statsRoutes } from './stats-routes.ts'
import { usageRoutes } from './usage-routes.ts'
import { workspaceDataRoutes } from './workspace-data-routes.ts'
import { type WorkspaceDependencies, workspaceRoutes } from './workspace-routes.ts'

export interface RouteDependencies
  extends WorkspaceDependencies,
    CorrectionDependencies,
    ProjectDependencies,
    OfferDependencies,
    KeyDependencies,
    CredentialDependencies,
    ProviderDependencies,
    ConfigDependencies,
    CheckoutDependencies,
    PriceDependencies,
    PlanDependencies,
    StatsDependencies,
    ObservationDependencies {
  readonly database: Database
  readonly ledger: WorkspaceDependencies['ledger'] & CorrectionDependencies['ledger'] & LimitDependencies['ledger']
  /** Of the program, for the document. */
  readonly version: string
}

export function managementRoutes(deps: RouteDependencies): readonly Route[] {
  const routes: Route[] = [
    ...workspaceRoutes(deps),
    ...workspaceDataRoutes(deps),
    ...correctionRoutes(deps),
    ...checkoutRoutes(deps),
    ...projectRoutes(deps),
    ...offerRoutes(deps),
    ...keyRoutes(deps),
    ...limitRoutes(deps),
    ...credentialRoutes(deps),
    ...providerRoutes(deps),
    ...configRoutes(deps),
    ...priceRoutes(deps),
    ...planRoutes(deps),
    // Both before the path with an id, which would take `events` and `export` for one.
    ...statsRoutes(deps),
    ...requestFileRoutes(deps),
    ...usageRoutes(deps),
    ...observationRoutes(deps),
  ]
  // Made when somebody asks for it, and once.
  let document: object | undefined
  const readDocument = () => {
    document ??= openApiDocument(routes, deps.version)
    return document
  }
  routes.push(openApiRoute(readDocument))
  return routes
}
