// A person who is removed through one replica is refused by all of them: with the session, a personal token and a key that
// they created, and with a device that they signed in. So is a device that revokes its token, and one that is ended in the
// management API. Measured from the moment the call is sent to the answer that refuses, so the answer's own time counts.

import { median } from '../../../bench/statistics.ts'
import { acceptInvitation, postForm, signInDevice } from '../../parts/device-sign-in.ts'
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

const removedKinds = ['session', 'token', 'key', 'device'] as const
const endedKinds = ['revokedDevice', 'endedDevice'] as const
const kinds = [...removedKinds, ...endedKinds]
type Kind = (typeof kinds)[number]

export async function runRemovals({ redis, rounds, withinMs }: RemovalOptions): Promise<Proof> {
  // Each call has its own client address: otherwise the delay after wrong tokens of one address would be measured as well.
  await using fleet = await startFleet({ redis, env: { TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' } })
  const urls = fleet.members.map(({ url }) => url)
  const workspace = await fleet.manage('POST', '/api/workspaces', { name: 'acme' })
  const project = await fleet.manage('POST', `/api/workspaces/${workspace.id}/projects`, { name: 'web' })
  const taken = new Map(kinds.map((kind) => [kind, [] as number[]]))
  const faults: string[] = []
  for (let round = 0; round < rounds; round++) {
    const removing = urls[round % urls.length] ?? ''
    const credentials = await join(fleet, removing, { workspaceId: workspace.id, projectId: project.id, round })
    const end = async (refused: readonly Kind[], send: () => Promise<unknown>) => {
      // After this, every replica has the credential in its cache. The end of a device empties it for the person's others.
      for (const url of urls) {
        for (const kind of refused) {
          const status = await statusOf(url, credentials[kind])
          if (status !== 200) faults.push(`round ${round}: ${kind} of a member answers ${status}`)
        }
      }
      const sentMs = performance.now()
      await send()
      await Promise.all(
        refused.map(async (kind) => {
          await Promise.all(urls.map((url) => untilRefused(url, credentials[kind])))
          taken.get(kind)?.push(performance.now() - sentMs)
        }),
      )
    }
    const { data } = await fleet.manage('GET', `/api/members?workspace_id=${workspace.id}`)
    const remove = (path: string) =>
      callManagement(removing, { authorization: `Bearer ${adminToken}` }, ['DELETE', path])
    await end(['revokedDevice'], () => postForm(removing, '/oauth/revoke', { token: credentials.revokedDevice.token }))
    await end(['endedDevice'], () => remove(`/api/sign-ins/${credentials.endedDevice.id}`))
    await end(removedKinds, () => remove(`/api/members/${data[0].id}`))
  }
  const worst = (kind: Kind) => Math.round(Math.max(...(taken.get(kind) ?? [])))
  for (const kind of kinds) {
    if (worst(kind) > withinMs) faults.push(`${kind}: worked for ${worst(kind)} ms`)
  }
  return {
    faults: [...faults, ...fleet.errors()],
    figures: {
      rounds,
      ...Object.fromEntries(
        kinds.map((kind) => [
          `${kind} refused, ms (median, worst)`,
          `${Math.round(median(taken.get(kind) ?? []))}, ${worst(kind)}`,
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

/** A new member with a session, a token, a key and three devices. */
async function join(fleet: Fleet, url: string, { workspaceId, projectId, round }: Place) {
  const invited = { email: `ada-${round}@example.com`, role: 'member', workspace_id: workspaceId }
  const { url: link } = await fleet.manage('POST', '/api/invitations', invited)
  const session = await acceptInvitation(url, link)
  const create = async (path: string, body: object) =>
    JSON.parse(await callManagement(url, session, ['POST', path, body])) as { readonly secret: string }
  const key = await create(`/api/projects/${projectId}/keys`, { name: 'mine' })
  // The first is alone when its id is read.
  const ended = await signInDevice(url, session, projectId)
  const { data } = JSON.parse(await callManagement(url, session, ['GET', '/api/me/sign-ins']))
  const [revoked, device] = [await signInDevice(url, session, projectId), await signInDevice(url, session, projectId)]
  const models = (token: string) => ({ path: '/v1/models', headers: { authorization: `Bearer ${token}` } })
  const token = await create('/api/tokens', { name: 'script', role: 'member', workspace_id: workspaceId })
  return {
    session: { path: '/api/me', headers: session },
    token: { path: '/api/me', headers: { authorization: `Bearer ${token.secret}` } },
    key: models(key.secret),
    device: models(device.access_token),
    revokedDevice: { ...models(revoked.access_token), token: revoked.access_token },
    endedDevice: { ...models(ended.access_token), id: data[0].id as string },
  } satisfies Record<Kind, Credential & { readonly token?: string; readonly id?: string }>
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
