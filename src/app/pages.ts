// The pages: the public catalog and the console, with sessions that the management token opens.

import manifest from '../../package.json' with { type: 'json' }
import { showPrice } from '../catalog/price.ts'
import { readPriceHistory } from '../catalog/price-versions.ts'
import type { Config } from '../config/config.ts'
import { createTokenCheck } from '../http/management/authorize.ts'
import { type Clock, isoTime } from '../kernel/clock.ts'
import { builtInProviderIds } from '../providers/registry.ts'
import type { Health } from '../routing/health/health.ts'
import type { Database } from '../store/database.ts'
import type { AdminToken } from '../tenancy/admin-token.ts'
import { appendAudit } from '../tenancy/audit.ts'
import { createConsoleSessions } from '../tenancy/console-sessions.ts'
import { createWeb, type Web } from '../web/create-web.ts'
import type { PageBudget } from '../web/page-budget.ts'
import { createSessions, readVisit, type SessionEvent, type Sessions, type Visit } from '../web/session.ts'
import { catalogItems, publicSource } from './catalog-view.ts'
import type { Goods } from './goods.ts'
import { keyedProviders } from './own-key-places.ts'

export interface PageDependencies {
  readonly clock: Clock
  readonly database: Database
  readonly adminToken: AdminToken
  readonly health: Health
  readonly budget: PageBudget
  addressOf(request: Request): string | undefined
  forwardedProtoOf(request: Request): string | undefined
  config(): Config
  goods(): Goods
}

export interface Pages {
  readonly web: Web
  readonly sessions: Sessions
}

const auditedAs = {
  'signed in by link': { action: 'session.open', details: { by: 'link' } },
  'signed in by token': { action: 'session.open', details: { by: 'token' } },
  'signed out': { action: 'session.end' },
  'signed out everywhere': { action: 'session.end_all' },
} as const satisfies Readonly<Record<SessionEvent, object>>

export function createPages(deps: PageDependencies): Pages {
  const { clock, database, adminToken, health, budget, addressOf, forwardedProtoOf, config, goods } = deps
  const publicUrl = (): string | undefined => config().publicUrl
  const visitOf = (request: Request): Visit =>
    readVisit(request, { publicUrl: publicUrl(), forwardedProto: forwardedProtoOf(request) })
  const sessions = createSessions({
    ...{ clock, visitOf, rows: createConsoleSessions(database) },
    adminToken: () => adminToken,
  })
  const web = createWeb({
    clock,
    version: manifest.version,
    sessions,
    budget,
    addressOf,
    publicUrl,
    visitOf,
    isPublic: () => config().catalogIsPublic,
    catalog: () => catalogItems(goods(), health),
    // What the operator calls providers of its own is not for everybody.
    keyedProviders: () => keyedProviders(goods()).filter((id) => builtInProviderIds.includes(id)),
    async priceHistory(modelId) {
      const history = await readPriceHistory(database.sql, modelId)
      return history.map(({ version, price, source, effectiveFrom }) => ({
        version,
        price: showPrice(price),
        source: publicSource(source),
        since: isoTime(effectiveFrom),
      }))
    },
    tokenPlace:
      adminToken.file === undefined
        ? `It is in ${adminToken.source}.`
        : 'It is in the file admin-token of the data folder.',
    onSession: (event) =>
      database.transaction((sql) =>
        appendAudit(sql, { actor: 'console session', at: clock.now(), object: 'console', ...auditedAs[event] }),
      ),
    // The same brake on guesses as the management API has.
    ...createTokenCheck({ adminToken, clock, addressOf }),
  })
  return { web, sessions }
}
