// A person who is removed through one replica is refused by all of them: with the session, a personal token and a key that
// they created. Measured from the moment the removal is sent to the answer that refuses, so the answer's own time counts.

import { median } from '../../../bench/statistics.ts'
import { callManagement } from '../../parts/manage.ts'
import { adminToken, type Fleet, startFleet } from './fleet.ts'
import type { Proof } from './proof.ts'

export interface RemovalOptions {
  readonly redis: boolean
  readonly rounds: number
  /** A credential that works longer is a fault. */
  readonly withinMs: number
}

type Headers = Readonly<Record<string, string>>

interface Credential {
  readonly path: string
  readonly headers: Headers
}

/** The load balancer's address: the session cookie's name follows from it, and is the same on each replica. */
const host = 'gate.test:8080'
const fromPage = { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }
const kinds = ['session', 'token', 'key'] as const

export async function runRemovals({ redis, rounds, withinMs }: RemovalOptions): Promise<Proof> {
  // Each call has its own client address: otherwise the delay after wrong tokens of one address would be measured as well.
  await using fleet = await startFleet({ redis, env: { TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' } })
  const urls = fleet.members.map(({ url }) => url)
  const workspace = await fleet.manage('POST', '/api/workspaces', { name: 'acme' })
  const project = await fleet.manage('POST', `/api/workspaces/${workspace.id}/projects`, { name: 'web' })
  const taken = { session: [] as number[], token: [] as number[], key: [] as number[] }
  const faults: string[] = []
  for (let round = 0; round < rounds; round++) {
    const removing = urls[round % urls.length] ?? ''
    const credentials = await join(fleet, removing, { workspaceId: workspace.id, projectId: project.id, round })
    // After this, every replica has the key in its cache.
    for (const url of urls) {
      for (const kind of kinds) {
        const status = await statusOf(url, credentials[kind])
        if (status !== 200) faults.push(`round ${round}: ${kind} of a member answers ${status}`)
      }
    }
    const { data } = await fleet.manage('GET', `/api/members?workspace_id=${workspace.id}`)
    const sentMs = performance.now()
    await callManagement(removing, { authorization: `Bearer ${adminToken}` }, ['DELETE', `/api/members/${data[0].id}`])
    await Promise.all(
      kinds.map(async (kind) => {
        await Promise.all(urls.map((url) => untilRefused(url, credentials[kind])))
        taken[kind].push(performance.now() - sentMs)
      }),
    )
  }
  const worst = (kind: (typeof kinds)[number]) => Math.round(Math.max(...taken[kind]))
  for (const kind of kinds) {
    if (worst(kind) > withinMs) faults.push(`a removed person's ${kind} worked for ${worst(kind)} ms`)
  }
  return {
    faults: [...faults, ...fleet.errors()],
    figures: {
      rounds,
      ...Object.fromEntries(
        kinds.map((kind) => [
          `${kind} refused, ms (median, worst)`,
          `${Math.round(median(taken[kind]))}, ${worst(kind)}`,
        ]),
      ),
    },
  }
}

interface Place {
  readonly workspaceId: string
  readonly projectId: string
  readonly round: number
}

/** A new member with a session, a token and a key. */
async function join(fleet: Fleet, url: string, { workspaceId, projectId, round }: Place) {
  const invited = { email: `ada-${round}@example.com`, role: 'member', workspace_id: workspaceId }
  const { url: link } = await fleet.manage('POST', '/api/invitations', invited)
  const opened = await fetch(`${url}/console/session`, {
    method: 'POST',
    headers: { ...fromPage, 'content-type': 'application/json' },
    body: JSON.stringify({
      invitation: new URL(link).searchParams.get('i'),
      name: 'Ada',
      password: 'correct horse battery',
    }),
  })
  const cookie = opened.headers.get('set-cookie')?.split(';')[0]
  if (cookie === undefined) throw new Error(`the invitation failed: ${opened.status} ${await opened.text()}`)
  const session = { ...fromPage, cookie }
  const create = async (path: string, body: object) =>
    JSON.parse(await callManagement(url, session, ['POST', path, body])) as { readonly secret: string }
  const key = await create(`/api/projects/${projectId}/keys`, { name: 'mine' })
  const token = await create('/api/tokens', { name: 'script', role: 'member', workspace_id: workspaceId })
  return {
    session: { path: '/api/me', headers: session },
    token: { path: '/api/me', headers: { authorization: `Bearer ${token.secret}` } },
    key: { path: '/v1/models', headers: { authorization: `Bearer ${key.secret}` } },
  } satisfies Record<string, Credential>
}

async function statusOf(url: string, { path, headers }: Credential): Promise<number> {
  const address = `10.${crypto.getRandomValues(new Uint8Array(3)).join('.')}`
  const response = await fetch(url + path, { headers: { ...headers, 'x-forwarded-for': address } })
  await response.text()
  return response.status
}

async function untilRefused(url: string, credential: Credential): Promise<void> {
  while ((await statusOf(url, credential)) !== 401) await Bun.sleep(5)
}
