// Whole gateways as separate processes, on one PostgreSQL and perhaps one Redis, with separate folders and the same
// secrets, as on several machines. They can be killed, stopped and started again one by one.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../../src/store/database.ts'
import { openDatabase } from '../../../src/store/open-database.ts'
import { type CrashGateway, startCrashGateway } from '../../parts/crash-gateway.ts'
import type { CrashPostgres } from '../../parts/crash-postgres.ts'
import { type CrashUpstream, startCrashUpstream } from '../../parts/crash-upstream.ts'
import { createThrowAwayFolder } from '../../parts/engines.ts'
import { upstreamConfig } from '../../parts/gateway.ts'
import { callManagement } from '../../parts/manage.ts'
import { sharedPostgres } from '../../parts/postgres.ts'
import { type RedisServer, startRedis } from '../../parts/redis.ts'

export interface FleetOptions {
  readonly redis: boolean
  /** Default 3. */
  readonly size?: number
  /** A server that can be taken away; absent = the one that this process shares. */
  readonly postgres?: CrashPostgres
  /** Beside the usual variables of each. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Member {
  /** As before after a restart, as a balancer needs it. */
  readonly url: string
  /** Its row in the table of replicas; another one after each start. */
  readonly replicaId: string
  isUp(): boolean
  /** kill -9, as a power cut. */
  kill(): Promise<void>
  /** SIGTERM; answers with how it ended. */
  stop(): Promise<number | string>
  /** `preload`: files that make it another version. */
  start(preload?: readonly string[]): Promise<void>
  /** Log lines above the level of info, over all its lives. */
  readonly warnings: string[]
}

export interface Fleet extends AsyncDisposable {
  readonly members: readonly Member[]
  /** The first key. */
  readonly key: string
  readonly databaseUrl: string
  /** For looking into the books while the gateways run. */
  readonly database: Database
  /** undefined = none was asked for. */
  readonly redis: RedisServer | undefined
  readonly upstream: CrashUpstream
  /** A call of the management API, by a member that is up; the JSON of the answer, which must be good. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into every kind of answer.
  manage(method: string, path: string, body?: object): Promise<any>
  /** Lines of level error, which nothing here may cause. */
  errors(): readonly string[]
}

export const adminToken = 'token-of-the-operator-0123456789'
const secret = Buffer.from(Array.from({ length: 32 }, (_, at) => at * 7 + 1)).toString('base64')

export async function startFleet({ redis: withRedis, size = 3, postgres, env = {} }: FleetOptions): Promise<Fleet> {
  const folder = createThrowAwayFolder()
  const upstream = startCrashUpstream()
  const redis = withRedis ? await startRedis() : undefined
  const databaseUrl = await (postgres ?? (await sharedPostgres())).createDatabase()
  const configPath = join(folder.path, 'tollgate.yaml')
  writeFileSync(configPath, upstreamConfig(upstream.upstream.url))
  const database = await openDatabase({ url: databaseUrl, dataFolder: folder.path, timeoutFactor: 30 })
  const shared = {
    TOLLGATE_SECRET: secret,
    TOLLGATE_ADMIN_TOKEN: adminToken,
    TOLLGATE_DRAIN_DELAY_SECONDS: '0',
    ...(redis && { REDIS_URL: redis.url }),
    ...env,
  }
  const members: RunningMember[] = []
  for (let at = 0; at < size; at++) {
    const dataFolder = join(folder.path, `replica-${at}`)
    mkdirSync(dataFolder, { mode: 0o700 })
    const member = new RunningMember({ dataFolder, databaseUrl, configPath }, shared, database)
    // One after the other: the first one migrates, and each is known by the row it adds.
    await member.start()
    members.push(member)
  }
  const first = members[0]?.key ?? ''
  return {
    members,
    key: first,
    databaseUrl,
    database,
    redis,
    upstream,
    manage: (method, path, body) => manage(members.find((member) => member.isUp())?.url ?? '', method, path, body),
    errors: () => members.flatMap(({ warnings }) => warnings.filter((line) => line.includes('"level":"error"'))),
    async [Symbol.asyncDispose]() {
      await Promise.all(members.map((member) => member.kill()))
      await database.close()
      await redis?.[Symbol.asyncDispose]()
      upstream.upstream.stop()
      folder[Symbol.dispose]()
    },
  }
}

class RunningMember implements Member {
  readonly warnings: string[] = []
  replicaId = ''
  #gateway: CrashGateway | undefined
  #port = '0'

  constructor(
    private readonly data: { dataFolder: string; databaseUrl: string; configPath: string },
    private readonly env: Readonly<Record<string, string>>,
    private readonly database: Database,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  get key(): string {
    return this.#gateway?.key ?? ''
  }

  isUp(): boolean {
    return this.#gateway?.isAlive() === true
  }

  async kill(): Promise<void> {
    await this.#gateway?.kill()
  }

  async stop(): Promise<number | string> {
    return (await this.#gateway?.stop()) ?? 'not started'
  }

  async start(preload?: readonly string[]): Promise<void> {
    const before = await this.#replicaIds()
    this.#gateway = await startCrashGateway(this.data, {
      env: { ...this.env, TOLLGATE_PORT: this.#port },
      ...(preload !== undefined && { preload }),
      onLine: (line) => void (/"level":"(warn|error)"/.test(line) && this.warnings.push(line)),
    })
    this.#port = new URL(this.#gateway.url).port
    const [added] = [...(await this.#replicaIds())].filter((id) => !before.has(id))
    if (added === undefined) throw new Error('a gateway listens and is not among the replicas')
    this.replicaId = added
  }

  async #replicaIds(): Promise<ReadonlySet<string>> {
    try {
      const rows = await this.database.sql<{ id: string }>`SELECT id FROM replicas`
      return new Set(rows.map(({ id }) => id))
    } catch {
      // Not migrated yet.
      return new Set()
    }
  }
}

const manage = async (url: string, ...call: [method: string, path: string, body?: object]): Promise<unknown> =>
  JSON.parse(await callManagement(url, { authorization: `Bearer ${adminToken}` }, call))

/** One line of a member's metrics page; undefined = it is not there. */
export async function readMetric(member: Member, name: string): Promise<number | undefined> {
  const headers = { authorization: `Bearer ${adminToken}` }
  const page = await (await fetch(`${member.url}/metrics`, { headers })).text()
  const value = page.split('\n').find((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
  return value === undefined ? undefined : Number(value.slice(value.lastIndexOf(' ')))
}
