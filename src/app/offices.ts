// What operators and payers come to: the management API, payments, the pages and their sessions.

import manifest from '../../package.json' with { type: 'json' }
import type { ConfigSource } from '../config/source.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { createManagementApi, type ManagementApi } from '../http/management/api.ts'
import { createRequestReader } from '../http/management/explain-request.ts'
import { createStripePayments, type StripePayments } from '../http/payments/stripe-payments.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Log } from '../telemetry/log.ts'
import { createIdempotency } from '../tenancy/idempotency.ts'
import { catalogItems } from './catalog-view.ts'
import type { Engine } from './engine.ts'
import type { Ground } from './ground.ts'
import { createCredentials } from './management.ts'
import { createPages, type Pages } from './pages.ts'
import type { People } from './people.ts'

export interface OfficeDependencies {
  readonly ground: Ground
  readonly people: People
  readonly engine: Engine
  readonly source: ConfigSource
  readonly clock: Clock
  readonly log: Log
  onDefect(error: unknown, id: RequestId): Failure
}

export interface Offices extends Pages {
  readonly management: ManagementApi
  /** undefined = no payment provider is configured. */
  readonly payments: StripePayments | undefined
}

export function openOffices({ ground, people, engine, source, clock, log, onDefect }: OfficeDependencies): Offices {
  const { database, adminToken } = ground
  const { ledger, health, goods } = engine
  const config = source.current
  const { renderFailure } = openaiChat
  const pages = createPages({ clock, adminToken, health, config: () => source.current, goods })
  const payments = createStripePayments({
    database,
    ledger,
    clock,
    log,
    renderFailure,
    onDefect,
    ...(config.stripe.secretKey && { secretKey: config.stripe.secretKey }),
    ...(config.stripe.webhookSecret && { webhookSecret: config.stripe.webhookSecret }),
    publicUrl: config.publicUrl ?? `http://${config.host}:${config.port}`,
  })
  const seal = ground.subkeys('idempotency-store')
  const management = createManagementApi({
    clock,
    database,
    ledger,
    adminToken,
    onDefect,
    renderFailure,
    invalidate: people.invalidate,
    idempotency: createIdempotency(seal.current, seal.previous),
    computeVerifier: people.computeVerifier,
    version: manifest.version,
    credentials: createCredentials({ keys: people.keyRing, cache: people.credentials, goods }),
    requests: createRequestReader({ database, ledger, requests: engine.requests }),
    catalog: () => catalogItems(goods(), health),
    prices: { find: (id) => goods().findPrice(id), renew: () => engine.stock.renew() },
    sessionOf: pages.sessions.sessionOf,
    checkout: config.stripe.secretKey && payments?.checkout,
  })
  return { ...pages, management, payments }
}
