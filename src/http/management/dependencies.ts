// The parts of the gateway that the handlers of the management API need.

import type { Mail } from '../../alerts/mail.ts'
import type { MailPolicy } from '../../alerts/rules.ts'
import type { SenderDependencies } from '../../alerts/webhooks.ts'
import type { CatalogItem } from '../../api/catalog.ts'
import type { AnswerOf, CallOf } from '../../api/client.ts'
import type { OfferedModel } from '../../api/projects.ts'
import type { ProviderDetails, ShownProvider } from '../../api/providers.ts'
import type { ExplainedRequest, LoggedRequest } from '../../api/requests.ts'
import type { Setting } from '../../api/system.ts'
import type { BatchRunner } from '../../batches/runner.ts'
import type { Model } from '../../catalog/model.ts'
import type { PriceInForce } from '../../catalog/price-versions.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { ContentExportSettings } from '../../kernel/content-export.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Policy } from '../../kernel/policy.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { CredentialFault, OwnCredential } from '../../providers/credentials.ts'
import type { ConfiguredBill } from '../../reconcile/run.ts'
import type { PlanExplanation } from '../../routing/offer.ts'
import type { Probe } from '../../routing/probe-provider.ts'
import type { Sql } from '../../store/sql.ts'
import type { RequestFilters } from '../../telemetry/read-log.ts'
import type { SortedQuery } from '../../telemetry/request-log.ts'
import type { RequestTail } from '../../telemetry/request-tail.ts'
import type { RouteHistory } from '../../telemetry/route-history.ts'
import type { ComputeVerifier } from '../../tenancy/api-key.ts'
import type { Authenticator } from '../../tenancy/authenticate.ts'
import type { BatchStore } from '../../tenancy/batches.ts'
import type { Changes } from '../../tenancy/changes.ts'
import type { CredentialSummary, NewCredential } from '../../tenancy/credentials.ts'
import type { Idempotency } from '../../tenancy/idempotency.ts'
import type { Page, PageQuery } from '../../tenancy/management.ts'
import type { Passwords } from '../../tenancy/people.ts'
import type { AdminToken } from '../../tenancy/secrets.ts'
import type { StoredResponses } from '../../tenancy/stored-responses.ts'
import type { Project } from '../../tenancy/workspaces.ts'
import type { AutoTopUps } from '../payments/auto-topup.ts'
import type { Refunds } from '../payments/refunds.ts'
import type { Checkout } from '../payments/stripe-checkout.ts'
import type { Subscriptions } from '../payments/subscriptions.ts'
import type { SignInDependencies } from '../sign-in.ts'
import type { MoveDependencies } from './writes.ts'

export interface RouteDependencies extends MoveDependencies {
  readonly clock: Clock
  readonly ledger: Pick<Ledger, 'fund' | 'wallet' | 'transfers' | 'correct' | 'recount' | 'renewPlans'>
  readonly idempotency: Idempotency
  /** undefined = no payments are configured; the operations answer which settings to make. */
  readonly checkout?: Checkout | undefined
  readonly autoTopUps?: AutoTopUps | undefined
  readonly refunds?: Refunds | undefined
  readonly subscriptions?: Subscriptions | undefined
  readonly computeVerifier: ComputeVerifier
  readonly invalidate: Authenticator['invalidate']
  readonly passwords: Passwords
  readonly signIns: Pick<SignInDependencies, 'userCodes' | 'count' | 'onRefused' | 'slowName' | 'guesses'>
  readonly adminToken: AdminToken
  /** The path of a new link that signs in as the operator, and with the public address if there is one. */
  createSignInLink(): Promise<{ readonly path: string; readonly url: string | null }>
  /** The address of an invitation or reset link with this secret. */
  linkTo(secret: string): string
  readonly credentials: Credentials
  readonly storedResponses: Pick<StoredResponses, 'list'>
  readonly providers: {
    /** The enabled ones. */
    list(): readonly ShownProvider[]
    /** undefined = it is not enabled. */
    find(provider: string): ProviderDetails | undefined
    /** undefined = it is not enabled. */
    test(provider: string): Promise<Probe | undefined>
    /** Tests a workspace's own key; throws a Failure if there is none or it cannot be used. */
    testOwn(workspaceId: WorkspaceId, provider: string): Promise<Probe>
  }
  readonly routeHistory: RouteHistory
  /** Sorted by id, for a key without an allowlist. */
  modelsOf(project: Project): Promise<readonly OfferedModel[]>
  catalog(options: { readonly all: boolean }): readonly CatalogItem[]
  /** Whether everyone may read the catalog, or only the operator. */
  catalogIsPublic(): boolean
  /** The plan for a caller without own credentials and allowlist; undefined = there is no such model. */
  planOf(modelId: string, surface: AnswerOf<'getPlan'>['surface']): PlanExplanation | undefined
  /** The prices in effect in this process. */
  readonly prices: {
    /** undefined = there is no such model. */
    find(modelId: string, list?: string): PriceInForce | undefined
    /** With what their routes cost. */
    models(): readonly Model[]
    /** After a change was committed. False: it is not in effect yet. */
    renew(): Promise<boolean>
  }
  /** Notifies other replicas of a price when it is committed. */
  readonly changes: Pick<Changes, 'record' | 'tell'>
  readonly requests: RequestLog
  readonly batches: Pick<BatchStore, 'page' | 'findAny' | 'results'> & Pick<BatchRunner, 'cancel'>
  /** Where the bills of providers are read, by the configuration in effect. */
  readonly bills: { sources(): readonly ConfiguredBill[] }
  /** Checks the addresses of webhooks, and derives their secrets. */
  readonly webhooks: Pick<SenderDependencies, 'guard' | 'secretsOf'>
  /** Which addresses alert rules may name. */
  mailPolicy(): MailPolicy
  /** Whether the mail server has accepted it. undefined = no e-mail is configured. */
  readonly sendMail?: ((mail: Mail) => Promise<boolean>) | undefined
  readonly tail: RequestTail
  /** What the configuration in effect says about the content of requests. */
  contentRules(): { readonly policies: readonly Policy[]; readonly contentExport: ContentExportSettings }
  /** The configuration in effect, without secrets. */
  settings(): readonly Setting[]
  /** Entries of the configuration file, and changing them. */
  readonly configFile: {
    read(): AnswerOf<'getConfigFile'>
    /** Throws a Failure, and then nothing has changed. */
    change(change: NonNullable<CallOf<'updateConfigFile'>['body']>): AnswerOf<'getConfigFile'>
    applied(): Promise<void>
  }
  /** The program's version, for the OpenAPI document. */
  readonly version: string
}

/** The provider keys that workspaces bring. */
export interface Credentials {
  /** Throws a Failure if the provider does not exist or the base URL may not be called. May query DNS. */
  destinationOf(provider: string, baseUrl: string | undefined): Promise<CredentialDestination>
  /** Parses a credential into its stored form; a fault if it is not one of this provider. */
  read(provider: string, text: string): OwnCredential | CredentialFault
  put(sql: Sql, credential: NewCredential): Promise<CredentialSummary>
  /** After a change was committed. */
  forget(workspaceId: WorkspaceId): void
}

/** Where a credential may be sent. */
export interface CredentialDestination {
  readonly origin: string
  /** undefined = the provider's own. */
  readonly baseUrl: string | undefined
}

export interface RequestLog {
  /** Newest first if no order is given. An unknown id has no requests. */
  list(query: RequestQuery & PageQuery): Promise<Page<LoggedRequest>>
  /** All of them, in the order of the list. */
  pages(query: RequestQuery): Promise<AsyncIterable<readonly LoggedRequest[]>>
  find(id: RequestId): Promise<ExplainedRequest | undefined>
}

export interface RequestQuery extends RequestFilters, Partial<Pick<SortedQuery, 'sort' | 'order' | 'signal'>> {
  /** When they started, epoch milliseconds; `to` is exclusive. */
  readonly from?: number
  readonly to?: number
}
