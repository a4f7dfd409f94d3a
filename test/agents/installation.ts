// A whole installation for agents: one gateway on SQLite, or two replicas on PostgreSQL behind a load balancer, with an
// identity provider, and a person with a console session who may sign in devices.

import { systemClock } from '../../src/kernel/clock.ts'
import { stageConfig } from '../conformance/cells.ts'
import { acceptInvitation, cookiesOf, fromPage } from '../parts/device-sign-in.ts'
import { startGateway } from '../parts/gateway.ts'
import { followToCallback, startIdentityProvider } from '../parts/identity-provider.ts'
import { callManagement } from '../parts/manage.ts'
import { sharedPostgres } from '../parts/postgres.ts'
import { startUpstream } from '../parts/upstream.ts'
import { startBalancer } from './balancer.ts'

export const installationKinds = [
  { engine: 'SQLite', account: 'a local account' },
  { engine: 'SQLite', account: 'an identity provider' },
  { engine: 'two replicas', account: 'a local account' },
  { engine: 'two replicas', account: 'an identity provider' },
] as const

export type InstallationKind = (typeof installationKinds)[number]

const adminToken = 'token-of-the-operator-0123456789'
export const email = 'ada@example.com'
type Headers = Readonly<Record<string, string>>
type ManagementCall = readonly [method: string, path: string, body?: object]

interface Running {
  readonly gateways: readonly [Awaited<ReturnType<typeof startGateway>>, ...Awaited<ReturnType<typeof startGateway>>[]]
  /** Lets time pass for codes that wait for a person. */
  age(milliseconds: number): Promise<void>
}

async function startGateways({ engine }: InstallationKind, config: string, providerEnv: Headers): Promise<Running> {
  const env = { ...providerEnv, TOLLGATE_ADMIN_TOKEN: adminToken, TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' }
  if (engine === 'SQLite') {
    let aheadMs = 0
    const clock = { ...systemClock, now: () => systemClock.now() + aheadMs }
    return {
      gateways: [await startGateway({ config, env, clock })],
      async age(milliseconds) {
        aheadMs += milliseconds
      },
    }
  }
  const url = await (await sharedPostgres()).createDatabase()
  const secret = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64')
  const shared = { ...env, DATABASE_URL: url, TOLLGATE_SECRET: secret }
  return {
    gateways: [await startGateway({ config, env: shared }), await startGateway({ config, env: shared })],
    // They use the clock of the database.
    async age(milliseconds) {
      const sql = new Bun.SQL(url)
      await sql`UPDATE device_grants SET expires_at = expires_at - ${milliseconds}`
      await sql.close()
    },
  }
}

/** A console session of the identity provider's account. */
async function sessionByProvider(url: string): Promise<Headers> {
  const begun = await fetch(`${url}/console/oidc`, { headers: fromPage, redirect: 'manual' })
  const callback = await followToCallback(
    begun.headers.get('location') ?? '',
    `${fromPage.origin}/console/oidc/callback`,
  )
  const headers = { ...fromPage, cookie: cookiesOf(begun) }
  const opened = await fetch(url + callback.pathname + callback.search, { headers, redirect: 'manual' })
  if (opened.status !== 200) throw new Error(`the identity provider’s sign-in failed: ${await opened.text()}`)
  return { ...fromPage, cookie: cookiesOf(opened) }
}

export type Installation = Awaited<ReturnType<typeof startInstallation>>

export async function startInstallation(kind: InstallationKind) {
  const upstream = startUpstream((_, reply) => reply.json(500, {}))
  const provider = await startIdentityProvider(`${fromPage.origin}/console/oidc/callback`)
  const { gateways, age } = await startGateways(kind, stageConfig(upstream.url), provider.env)
  const balancer = startBalancer(gateways)
  // At another replica than the one that the device polls next.
  const [first, last] = [gateways[0].url, gateways.at(-1)?.url ?? '']
  const admin = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
  const manage = async (...call: ManagementCall) => JSON.parse((await callManagement(first, admin, [...call])) || '{}')

  const { id: workspaceId } = await manage('POST', '/api/workspaces', { name: 'acme' })
  const { id: projectId } = await manage('POST', `/api/workspaces/${workspaceId}/projects`, { name: 'web' })
  await manage('POST', `/api/workspaces/${workspaceId}/topups`, { amount: '5.00' })
  provider.account = { sub: email, email, email_verified: true, name: 'Ada' }
  const invitation = await manage('POST', '/api/invitations', { email, role: 'member', workspace_id: workspaceId })
  const isLocal = kind.account === 'a local account'
  const session = isLocal ? await acceptInvitation(last, invitation.url) : await sessionByProvider(last)
  const decide = (what: 'approve' | 'deny', body: object) =>
    callManagement(last, session, ['POST', `/api/me/device-grants/${what}`, body])
  return {
    ...{ upstream, manage, age, url: balancer.url, dataFolder: gateways[0].dataFolder },
    approve: (code: string) => decide('approve', { code, project_id: projectId }),
    deny: (code: string) => decide('deny', { code }),
    /** The devices that are signed in. */
    devices: async (): Promise<readonly { id: string; email: string; key_id: string }[]> =>
      (await manage('GET', '/api/sign-ins')).data,
    async stop() {
      await balancer.stop()
      for (const gateway of gateways) await gateway.stop()
      await provider.stop()
      upstream.stop()
    },
  }
}
