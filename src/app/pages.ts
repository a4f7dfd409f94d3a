// The pages: the public catalog and the console, with sessions that the management token opens.

import manifest from '../../package.json' with { type: 'json' }
import type { Config } from '../config/config.ts'
import { createAuthorize } from '../http/management/authorize.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { Health } from '../routing/health/health.ts'
import type { AdminToken } from '../tenancy/admin-token.ts'
import { createWeb, type Web } from '../web/create-web.ts'
import { createSessions, type Sessions } from '../web/session.ts'
import { catalogItems } from './catalog-view.ts'
import type { Goods } from './goods.ts'

export interface PageDependencies {
  readonly clock: Clock
  readonly adminToken: AdminToken
  readonly health: Health
  config(): Config
  goods(): Goods
}

export interface Pages {
  readonly web: Web
  readonly sessions: Sessions
}

export function createPages({ clock, adminToken, health, config, goods }: PageDependencies): Pages {
  const publicUrl = (): string | undefined => config().publicUrl
  const sessions = createSessions({ clock, adminToken: () => adminToken, publicUrl })
  // The same brake on guesses as the management API has.
  const authorize = createAuthorize({ adminToken, clock })
  const web = createWeb({
    clock,
    version: manifest.version,
    sessions,
    publicUrl,
    isPublic: () => config().catalogIsPublic,
    catalog: () => catalogItems(goods(), health),
    tokenPlace:
      adminToken.file === undefined
        ? `It is in ${adminToken.source}.`
        : 'It is in the file admin-token of the data folder.',
    async checkToken(token) {
      const headers = { authorization: `Bearer ${token}` }
      const found = await authorize(new Request('http://gate/', { headers }))
      return found instanceof Failure ? found : undefined
    },
  })
  return { web, sessions }
}
