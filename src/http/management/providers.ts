// Handlers of provider keys: those that workspaces bring (stored, replaced, deleted, listed by their last four
// characters) and testing these and the operator's own.

import type { AnswerOf, CallOf } from '../../api/client.ts'
import { listAnswer } from '../../api/fields.ts'
import type { historyPeriods, TestResult } from '../../api/providers.ts'
import { routeStatus } from '../../api/route-state.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { Secret } from '../../kernel/secret.ts'
import type { Probe, ProbeVerdict } from '../../routing/probe-provider.ts'
import { findIncidents } from '../../telemetry/route-history.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import { deleteCredential, listCredentials, type NewCredential } from '../../tenancy/credentials.ts'
import { credentialAnswer } from './answers.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Handlers } from './route.ts'

/** How long an answer waits for a changed file to take effect; the database may be slow. */
const effectMs = 5_000

export function providerHandlers(deps: RouteDependencies) {
  const { database, credentials, providers, configFile } = deps
  return {
    async listCredentials({ id }) {
      return listAnswer((await listCredentials(database.sql, id)).map(credentialAnswer))
    },
    async getCredential({ id, provider }) {
      const found = (await listCredentials(database.sql, id)).find((credential) => credential.provider === provider)
      if (!found) throw noCredential(provider)
      return credentialAnswer(found)
    },
    putCredential: {
      // Not a `write`: host names are resolved on the way, and a transaction must not wait for that.
      async run({ id, provider, body, act }) {
        const { origin, baseUrl } = await credentials.destinationOf(provider, body.base_url ?? undefined)
        const read = credentials.read(provider, body.api_key)
        if ('fault' in read) throw invalidRequest(`\`api_key\` ${read.fault}.`, 'api_key')
        const credential: NewCredential = {
          workspaceId: id,
          provider,
          apiKey: new Secret(read.text),
          ...(read.name === undefined ? {} : { name: read.name }),
          origin,
          ...(baseUrl === undefined ? {} : { baseUrl }),
          storedAt: act.at,
        }
        const stored = await database.transaction(async (sql) => {
          const summary = await credentials.put(sql, credential)
          const details = { provider, credential: summary.id, last4: summary.last4, origin }
          await appendAudit(sql, { ...act, action: 'credential.put', object: id, details })
          return summary
        })
        return credentialAnswer(stored)
      },
      committed: ({ id }) => credentials.forget(id),
    },
    deleteCredential: {
      async write(sql, { id, provider, act }) {
        if (!(await deleteCredential(sql, id, provider))) throw noCredential(provider)
        await appendAudit(sql, { ...act, action: 'credential.delete', object: id, details: { provider } })
      },
      committed: ({ id }) => credentials.forget(id),
    },
    async testCredential({ id, provider, act }) {
      return testResult(await providers.testOwn(id, provider), act.at)
    },
    listProviders: async () => listAnswer(providers.list()),
    async getProvider({ provider }) {
      const found = providers.find(provider)
      if (!found) throw notEnabled(provider)
      return found
    },
    getProviderHistory: async ({ query: { period }, act }) => historyAnswer(deps, period, act.at),
    async testProvider({ provider, act }) {
      const probe = await providers.test(provider)
      if (probe === undefined) throw notEnabled(provider)
      return testResult(probe, act.at)
    },
    getConfigFile: async () => configFile.read(),
    async updateConfigFile({ body, act }) {
      // The file is changed last: if that is refused, nothing is recorded either.
      const entries = await database.transaction(async (sql) => {
        for (const { action, object, details } of fileChanges(body)) {
          await appendAudit(sql, { ...act, action, object, details })
        }
        return configFile.change(body)
      })
      await Promise.race([configFile.applied(), Bun.sleep(effectMs)])
      return entries
    },
  } satisfies Partial<Handlers>
}

const hourMs = 3_600_000
/** The last bucket is the current one. */
const periods = {
  '24h': { count: 24, bucketMs: hourMs },
  '7d': { count: 28, bucketMs: 6 * hourMs },
  '30d': { count: 30, bucketMs: 24 * hourMs },
} as const satisfies Record<(typeof historyPeriods)[number], object>

async function historyAnswer(
  { routeHistory, catalog }: Pick<RouteDependencies, 'routeHistory' | 'catalog'>,
  period: keyof typeof periods,
  now: number,
): Promise<AnswerOf<'getProviderHistory'>> {
  const { count, bucketMs } = periods[period]
  const from = Math.floor(now / bucketMs) * bucketMs - (count - 1) * bucketMs
  const routes = await routeHistory.read(now, from)
  const failing = failingRoutes(catalog({ all: false }))
  return {
    from: isoTime(from),
    to: isoTime(now),
    bucket_seconds: bucketMs / 1000,
    routes: routes.map(({ provider, upstreamModel, slots }) => {
      const buckets = new Map<number, [ok: number, failed: number]>()
      let [timed, firstEventMs] = [0, 0]
      for (const [start, slot] of slots) {
        const at = Math.floor((start - from) / bucketMs)
        const [ok, failed] = buckets.get(at) ?? [0, 0]
        if (slot.ok + slot.failed > 0) buckets.set(at, [ok + slot.ok, failed + slot.failed])
        timed += slot.timed
        firstEventMs += slot.firstEventMs
      }
      return {
        provider,
        upstream_model: upstreamModel,
        buckets: Array.from({ length: count }, (_, at) => buckets.get(at) ?? null),
        first_event_ms: timed === 0 ? null : Math.round(firstEventMs / timed),
      }
    }),
    incidents: findIncidents(routes, (route) => failing.has(routeName(route))).map((incident) => ({
      provider: incident.provider,
      upstream_models: incident.upstreamModels,
      started_at: isoTime(incident.startedAt),
      ended_at: incident.isOpen ? null : isoTime(incident.lastFailedAt),
      causes: incident.causes.map(([outcome, attempts]) => ({ outcome, attempts })),
      requests_rescued: incident.rescued,
      requests_failed: incident.lost,
    })),
  }
}

const routeName = (route: { readonly provider: string; readonly upstreamModel: string }) =>
  `${route.provider} ${route.upstreamModel}`

/** As the catalog shows them, so that an incident goes on exactly as long as its route is shown as failing. */
function failingRoutes(models: ReturnType<RouteDependencies['catalog']>): ReadonlySet<string> {
  const routes = models.flatMap((model) => model.routes).filter((route) => routeStatus(route).level === 'error')
  return new Set(routes.map(({ provider, upstream_model }) => routeName({ provider, upstreamModel: upstream_model })))
}

type FileChange = NonNullable<CallOf<'updateConfigFile'>['body']>

/** For the audit log, without keys. */
function fileChanges({ providers = {}, models = {}, aliases = {}, disabled_providers: disabled = {} }: FileChange) {
  const sections = { provider: providers, model: models, alias: aliases }
  const switched = Object.entries(disabled).map(([object, isDisabled]) => {
    return { action: `provider.${isDisabled ? 'disable' : 'enable'}` as const, object, details: {} }
  })
  const changed = Object.entries(sections).flatMap(([kind, entries]) =>
    Object.entries(entries).map(([object, entry]) => {
      const action = `${kind}.${entry === null ? 'remove' : 'put'}` as const
      if (entry === null) return { action, object, details: {} }
      if (typeof entry === 'string') return { action, object, details: { model: entry } }
      const { api_key: key, ...rest } = entry
      return { action, object, details: { ...rest, ...(key !== undefined && { api_key: 'replaced' }) } }
    }),
  )
  return [...switched, ...changed]
}

function notEnabled(provider: string): Failure {
  return new Failure('NOT_FOUND', `The provider ${provider} is not enabled.`)
}

function noCredential(provider: string): Failure {
  return new Failure('NOT_FOUND', `The workspace has no credential for the provider ${provider}.`)
}

const verdicts: Readonly<Record<ProbeVerdict, readonly [TestResult['verdict'], string]>> = {
  accepted: ['ok', 'The provider accepts the key.'],
  inside: ['ok', 'It answers inside the gateway and needs no key.'],
  refused: ['refused', 'The provider rejects the key. Replace it.'],
  'out of credit': ['no_credit', 'The provider accepts the key, but its account has no credit. Top it up there.'],
  throttled: ['throttled', 'The provider accepts the key, but throttles it now. Try again in a minute.'],
  failing: ['failing', 'The provider has an outage or an internal error. Try again later.'],
  redirecting: ['wrong_address', 'The address redirects, and redirects are not followed. Correct the address.'],
  'wrong address': ['wrong_address', 'The address answers, but not as this provider. Correct the address.'],
  unreachable: ['unreachable', 'The provider cannot be reached'],
}

function testResult({ verdict, status, why }: Probe, now: number): TestResult {
  const [shown, text] = verdicts[verdict]
  const message = verdict === 'unreachable' ? `${text} (${why ?? 'the call failed'}).` : text
  return { verdict: shown, message, status: status ?? null, tested_at: isoTime(now) }
}
