// Coding agents that a person signed in on a whole gateway: `tollgate login`, approved in a console session of a local account
// or of an identity provider, on SQLite or on two replicas behind a load balancer. The token is renewed in mid-session, and
// when an admin has signed the device out the agent shows what to run.

import { stageConfig } from '../conformance/cells.ts'
import { runHere } from '../parts/command-line.ts'
import { acceptInvitation, fromPage } from '../parts/device-sign-in.ts'
import { freePort } from '../parts/free-port.ts'
import { startGateway } from '../parts/gateway.ts'
import { followToCallback, startIdentityProvider } from '../parts/identity-provider.ts'
import { callManagement } from '../parts/manage.ts'
import { sharedPostgres } from '../parts/postgres.ts'
import { gatewayCommand } from '../parts/program.ts'
import { startUpstream } from '../parts/upstream.ts'
import { startBalancer } from './balancer.ts'
import { startLoopbackProxy } from './loopback-proxy.ts'
import { answer, Desk, type RealAgent, type Tried } from './real-agents.ts'
import { expireToken, startProxy } from './signed-in-agents.ts'

export const approvedKinds = [
  { engine: 'SQLite', account: 'a local account' },
  { engine: 'SQLite', account: 'an identity provider' },
  { engine: 'two replicas', account: 'a local account' },
  { engine: 'two replicas', account: 'an identity provider' },
] as const

type Kind = (typeof approvedKinds)[number]

const adminToken = 'token-of-the-operator-0123456789'
const email = 'ada@example.com'
type Headers = Readonly<Record<string, string>>

async function startGateways({ engine }: Kind, config: string, providerEnv: Headers) {
  const env = { ...providerEnv, TOLLGATE_ADMIN_TOKEN: adminToken, TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' }
  if (engine === 'SQLite') return [await startGateway({ config, env })] as const
  const shared = {
    ...env,
    DATABASE_URL: await (await sharedPostgres()).createDatabase(),
    TOLLGATE_SECRET: Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64'),
  }
  return [await startGateway({ config, env: shared }), await startGateway({ config, env: shared })] as const
}

const cookiesOf = (response: Response) =>
  response.headers
    .getSetCookie()
    .map((cookie) => cookie.slice(0, cookie.indexOf(';')))
    .join('; ')

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

/** Runs `tollgate login`, and approves the code that it shows. */
async function login(url: string, home: string, approve: (code: string) => Promise<unknown>): Promise<void> {
  const env = { HOME: home }
  const child = Bun.spawn([...gatewayCommand(), 'login', url], { cwd: home, env, stdio: ['ignore', 'ignore', 'pipe'] })
  const decoder = new TextDecoder()
  let text = ''
  let isApproved = false
  for await (const bytes of child.stderr) {
    text += decoder.decode(bytes, { stream: true })
    const code = /\n {2}([A-Z]{4}-[A-Z]{4})\n/.exec(text)?.[1]
    if (code === undefined || isApproved) continue
    isApproved = true
    await approve(code)
  }
  if ((await child.exited) !== 0) throw new Error(`tollgate login failed:\n${text}`)
}

export async function tryApproved(agent: RealAgent, folder: string, kind: Kind): Promise<Tried> {
  const upstream = startUpstream((_, reply) => reply.json(500, {}))
  const provider = await startIdentityProvider(`${fromPage.origin}/console/oidc/callback`)
  const gateways = await startGateways(kind, stageConfig(upstream.url), provider.env)
  const balancer = startBalancer(gateways)
  const proxy = await startLoopbackProxy()
  using desk = new Desk(agent, folder, { url: balancer.url, dataFolder: gateways[0].dataFolder }, proxy.url)
  const [first, last] = [gateways[0].url, gateways.at(-1)?.url ?? '']
  const admin = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
  const manage = async (...call: [method: string, path: string, body?: object]) =>
    JSON.parse((await callManagement(first, admin, call)) || '{}')
  const tollgate = (...args: string[]) => runHere(args, { env: { HOME: desk.home }, cwd: desk.home })
  let localProxy: Bun.Subprocess | undefined
  try {
    const { id: workspaceId } = await manage('POST', '/api/workspaces', { name: 'acme' })
    const { id: projectId } = await manage('POST', `/api/workspaces/${workspaceId}/projects`, { name: 'web' })
    await manage('POST', `/api/workspaces/${workspaceId}/topups`, { amount: '5.00' })
    provider.account = { sub: email, email, email_verified: true, name: 'Ada' }
    const invitation = await manage('POST', '/api/invitations', { email, role: 'member', workspace_id: workspaceId })
    const isLocal = kind.account === 'a local account'
    const session = isLocal ? await acceptInvitation(last, invitation.url) : await sessionByProvider(last)
    // At another replica than the one that the device polls next.
    const approve = (code: string) =>
      callManagement(last, session, ['POST', '/api/me/device-grants/approve', { code, project_id: projectId }])
    await login(balancer.url, desk.home, approve)

    const { model } = desk
    upstream.handle((call, reply) => {
      if (upstream.calls.length === 1) expireToken(desk.home)
      return model(call, reply)
    })
    const port = String(freePort())
    const connected = await tollgate('connect', agent.id, '--model', 'test/plain-1', '--port', port)
    if (connected.err.includes('tollgate proxy')) localProxy = await startProxy(port, { HOME: desk.home })
    const startedMs = performance.now()
    const run = await desk.run(connected.out)
    const seconds = (performance.now() - startedMs) / 1000
    const isDone = agent.read ? run.printed.includes(answer) : desk.isNoteChanged

    const [signIn] = (await manage('GET', '/api/sign-ins')).data
    const requests = (await manage('GET', '/api/requests?limit=200')).data as { key_id: string; status: number }[]
    await manage('DELETE', `/api/sign-ins/${signIn?.id}`)
    const signedOut = await desk.run(connected.out)
    const wrong = [
      connected.exit !== 0 && `connect: ${connected.err}`,
      run.exitCode !== 0 && `exit code ${run.exitCode}`,
      !isDone && 'the task is not done',
      signIn?.email !== email && 'the device is not in the list',
      requests.length === 0 && 'no request was recorded',
      !requests.every(({ key_id: id, status }) => id === signIn?.key_id && status === 200) &&
        'a request failed or is not the person’s',
      !signedOut.printed.replace(/\s+/g, ' ').includes('tollgate login') &&
        `it did not show what to run when signed out: ${signedOut.printed}`,
    ]
    return { faults: wrong.filter((fault) => typeof fault === 'string'), printed: run.printed, seconds }
  } finally {
    localProxy?.kill('SIGKILL')
    proxy.stop()
    await balancer.stop()
    for (const gateway of gateways) await gateway.stop()
    await provider.stop()
    upstream.stop()
  }
}
