// Signed-in people: what their requests cost beside those with a key, and how long a token still works after its device or
// person is gone. `npm run bench:sign-in`, or `npm run bench:sign-in -- --rounds 5`. Ratios and times of one run; it exits
// with 1 if a target is missed.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import type { ProjectId } from '../src/kernel/ids.ts'
import { openDataFolder } from '../src/store/data-folder.ts'
import { openDatabase } from '../src/store/open-database.ts'
import { createAccessTokens } from '../src/tenancy/access-tokens.ts'
import { addMember, insertPerson } from '../src/tenancy/people.ts'
import { deriveSubkey, loadMasterSecret } from '../src/tenancy/secrets.ts'
import { createSignIn } from '../src/tenancy/sign-ins.ts'
import { type CrashGateway, startCrashGateway } from '../test/parts/crash-gateway.ts'
import { adminHeaders, callManagement } from '../test/parts/manage.ts'
import { findPostgresPrograms } from '../test/parts/postgres.ts'
import { refuseOptions, scriptOptions } from '../test/parts/script-options.ts'
import { PATHS, requestBody, requestHeaders } from './cells.ts'
import { startUpstream } from './contenders/start-upstream.ts'
import { tollgate } from './contenders/tollgate.ts'
import { startServer } from './postgres-server.ts'
import { runLoad } from './run-load.ts'
import { likelyRange, median, percentile } from './statistics.ts'

const people = 1000
/** Of a request with a key. */
const ratioMax = 1.05
const refusedMsMax = 1000
const replicas = 3

const usage = `npm run bench:sign-in -- [options]
  --rounds N   of each measurement; 20`

interface Place {
  readonly dataFolder: string
  readonly databaseUrl: string | undefined
}

interface SignedIn {
  readonly token: string
  readonly signInId: string
  readonly memberId: string
}

type Management = (method: string, path: string, body?: object) => Promise<{ readonly [member: string]: never }>

function managementOf(url: string, dataFolder: string): Management {
  return async (...call) => {
    const text = await callManagement(url, adminHeaders(dataFolder), call)
    return text === '' ? {} : JSON.parse(text)
  }
}

async function firstProject(manage: Management): Promise<{ readonly id: ProjectId; readonly workspace_id: string }> {
  const [workspace] = (await manage('GET', '/api/workspaces')).data as unknown as [{ id: string }]
  const [project] = (await manage('GET', `/api/workspaces/${workspace.id}/projects`)).data as unknown as [
    { id: ProjectId; workspace_id: string },
  ]
  return project
}

/** Signs so many people in, as if they had come by an invitation and had approved a device. */
async function signIn(place: Place, project: Awaited<ReturnType<typeof firstProject>>, count: number) {
  const secret = loadMasterSecret(
    undefined,
    openDataFolder(place.dataFolder, () => {}),
  )
  const accessTokens = createAccessTokens({ current: deriveSubkey(secret, 'access-token') })
  const database = await openDatabase({ url: place.databaseUrl, dataFolder: place.dataFolder })
  const workspaceId = project.workspace_id as `ws_${string}`
  const signedIn: SignedIn[] = []
  for (let at = 0; at < count; at++) {
    const now = systemClock.now()
    const email = `${crypto.randomUUID()}@example.com`
    const { subject, memberId } = await database.transaction(async (sql) => {
      const personId = await insertPerson(sql, { email, name: 'Ada' }, now)
      await addMember(sql, personId, { role: 'member', workspaceId }, 'invitation', now)
      const [member] = await sql<{ id: string }>`SELECT id FROM members WHERE person_id = ${personId}`
      const device = { personId, projectId: project.id, client: 'bench', device: 'laptop' }
      return { ...(await createSignIn(sql, device, now)), memberId: member?.id ?? '' }
    })
    signedIn.push({ token: await accessTokens.issue(subject, now), signInId: subject.signInId, memberId })
  }
  await database.close()
  return signedIn
}

// ── Cost ──

interface CostRound {
  readonly key: number
  readonly token: number
}

/** CPU per request of 1,000 people, each with an own key and a token, in turns. */
async function measureCost(folder: string, rounds: number): Promise<readonly CostRound[]> {
  const upstream = await startUpstream(folder)
  const { url: upstreamUrl, pid: upstreamPid } = upstream
  const setting = { upstreamUrl, upstreamPid, folder, peersFolder: '', installPeers: false }
  const started = await tollgate.start(setting)
  if ('absent' in started) throw new Error(started.absent)
  const { running } = started
  try {
    const dataFolder = join(folder, 'tollgate-data')
    const manage = managementOf(`http://127.0.0.1:${running.port}`, dataFolder)
    const project = await firstProject(manage)
    await manage('POST', `/api/workspaces/${project.workspace_id}/topups`, { amount: '1000000' })
    const signedIn = await signIn({ dataFolder, databaseUrl: undefined }, project, people)
    const keys: string[] = []
    for (let at = 0; at < people; at++) {
      keys.push(
        (await manage('POST', `/api/projects/${project.id}/keys`, { name: `k${at}` })).secret as unknown as string,
      )
    }
    const credentials = { key: keys, token: signedIn.map(({ token }) => token) }
    const shape = { surface: 'chat', provider: 'chat', events: 0, paceMs: 0, waitMs: 0, promptBytes: 1000 } as const
    const costOf = async (kind: keyof CostRound, windowMs: number): Promise<number> => {
      const result = await runLoad({
        ...{ port: running.port, pid: running.pid, path: PATHS.chat, connections: 16, arrivalsPerSecond: 0 },
        headers: credentials[kind].map((secret) => ({ ...requestHeaders('chat'), authorization: `Bearer ${secret}` })),
        bodies: [requestBody(shape, running.call('chat', 'chat')?.model ?? '')],
        ...{ warmupMs: 1000, windowMs, eventsExpected: 0 },
      })
      if (!result || result.errors > 0) throw new Error(`requests failed: ${result?.firstError}`)
      return result.cpuMicros / result.requests
    }
    for (const kind of ['key', 'token'] as const) await costOf(kind, 3000)
    const measured: CostRound[] = []
    for (let round = 0; round < rounds; round++) {
      // Whichever comes first, so that a machine that gets slower or faster favours neither.
      const first = round % 2 === 0 ? 'key' : 'token'
      const one = await costOf(first, 2000)
      const other = await costOf(first === 'key' ? 'token' : 'key', 2000)
      measured.push(first === 'key' ? { key: one, token: other } : { key: other, token: one })
    }
    return measured
  } finally {
    await running.stop()
    await upstream.stop()
  }
}

// ── Revocation ──

const endings = {
  'device signed out': (manage: Management, { signInId }: SignedIn) => manage('DELETE', `/api/sign-ins/${signInId}`),
  'person removed': (manage: Management, { memberId }: SignedIn) => manage('DELETE', `/api/members/${memberId}`),
} as const

/** Milliseconds from the call that ends it to the first 401 of the replica that is last. */
async function refusedAfterMs(gateways: readonly CrashGateway[], token: string, end: () => Promise<unknown>) {
  const statusAt = async (url: string) => {
    const response = await fetch(`${url}/v1/models/sandbox/echo`, { headers: { authorization: `Bearer ${token}` } })
    await response.arrayBuffer()
    return response.status
  }
  for (const { url } of gateways) {
    const status = await statusAt(url)
    if (status !== 200) throw new Error(`the token was not accepted before: ${status}`)
  }
  const startedMs = systemClock.monotonicMs()
  const [, ...times] = await Promise.all([
    end(),
    ...gateways.map(async ({ url }) => {
      while ((await statusAt(url)) !== 401) await Bun.sleep(2)
      return systemClock.monotonicMs() - startedMs
    }),
  ])
  return Math.max(...(times as number[]))
}

/** Of each ending in so many rounds, by the name of the engine. */
async function measureRevocation(folder: string, rounds: number, databaseUrl: string | undefined) {
  const gateways: CrashGateway[] = []
  const configPath = join(folder, 'tollgate.yaml')
  writeFileSync(configPath, '{}\n')
  const dataFolder = join(folder, 'data-0')
  const name = databaseUrl === undefined ? 'SQLite, 1 process' : `PostgreSQL, ${replicas} processes`
  try {
    for (let at = 0; at < (databaseUrl === undefined ? 1 : replicas); at++) {
      const ownFolder = join(folder, `data-${at}`)
      mkdirSync(ownFolder, { mode: 0o700 })
      // The first makes the secret, and the others share it.
      const env = { TOLLGATE_SECRET: at === 0 ? '' : readFileSync(join(dataFolder, 'secret'), 'utf8').trim() }
      const data = { dataFolder: ownFolder, databaseUrl, configPath }
      gateways.push(await startCrashGateway(data, at === 0 ? {} : { env }))
    }
    const manage = managementOf(gateways[0]?.url ?? '', dataFolder)
    const project = await firstProject(manage)
    const lines: { readonly what: string; readonly times: readonly number[] }[] = []
    for (const [what, end] of Object.entries(endings)) {
      const times: number[] = []
      for (const one of await signIn({ dataFolder, databaseUrl }, project, rounds)) {
        times.push(await refusedAfterMs(gateways, one.token, () => end(manage, one)))
      }
      lines.push({ what: `${what}, ${name}`, times })
    }
    return lines
  } finally {
    for (const gateway of gateways) await gateway.stop()
  }
}

// ── Report ──

async function main(): Promise<void> {
  const { rounds: given = '20' } = scriptOptions(usage, { rounds: { type: 'string' } })
  const rounds = Number(given)
  if (!Number.isInteger(rounds) || rounds < 1) refuseOptions('--rounds takes a whole number.', usage)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-sign-in-'))
  const missed: string[] = []
  try {
    const programs = findPostgresPrograms()
    await using server = programs === undefined ? undefined : await startServer(programs)
    if (server === undefined) console.log('without PostgreSQL, which is not installed')
    for (const databaseUrl of [undefined, ...(server ? [await server.createDatabase()] : [])]) {
      const own = mkdtempSync(join(folder, 'engine-'))
      for (const { what, times } of await measureRevocation(own, rounds, databaseUrl)) {
        const [half, most] = [median(times), Math.max(...times)].map((ms) => Math.round(ms))
        console.log(
          `${what}: first 401 everywhere after ${half} ms (p50), ${Math.round(percentile(times, 95))} ms (p95), ${most} ms (longest of ${times.length})`,
        )
        if (Math.max(...times) >= refusedMsMax) missed.push(what)
      }
    }
    const costs = await measureCost(folder, rounds)
    const ratioOf = (drawn: readonly CostRound[]) => median(drawn.map(({ key, token }) => token / key))
    const [low, high] = likelyRange(costs, ratioOf)
    const ratio = ratioOf(costs)
    const [key, token] = [median(costs.map((each) => each.key)), median(costs.map((each) => each.token))]
    console.log(
      `${people} people: ${Math.round(token)} µs of CPU per request with a token, ${Math.round(key)} µs with a key, × ${ratio.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`,
    )
    if (ratio > ratioMax) missed.push('cost')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  for (const what of missed) console.error(`missed: ${what}`)
  process.exit(missed.length === 0 ? 0 : 1)
}

await main()
