// A management API on loopback over a real database and ledger. Every answer is checked against the schema of its
// route on the way, so that no test can see one that the OpenAPI document does not describe.

import { expect } from 'bun:test'
import type { CatalogItem } from '../../src/api/catalog.ts'
import type { ShownProvider } from '../../src/api/providers.ts'
import type { ExplainedRequest, LoggedRequest } from '../../src/api/requests.ts'
import type { PriceInForce } from '../../src/catalog/price-versions.ts'
import { openaiChat } from '../../src/dialects/openai-chat/index.ts'
import { everyPage } from '../../src/http/management/answers.ts'
import type { Credentials, RequestLog } from '../../src/http/management/dependencies.ts'
import { createMatchRoute } from '../../src/http/management/route.ts'
import { createManagementApi, type ManagementDependencies, managementRoutes } from '../../src/http/management/serve.ts'
import { Failure } from '../../src/kernel/failure.ts'
import { Secret } from '../../src/kernel/secret.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { pathOf } from '../../src/pipeline/client-request.ts'
import { readOwnCredential } from '../../src/providers/credentials.ts'
import { createEgressGuard } from '../../src/providers/egress/egress-guard.ts'
import { openDataFolder } from '../../src/store/data-folder.ts'
import type { Database } from '../../src/store/database.ts'
import { createRequestTail } from '../../src/telemetry/request-tail.ts'
import { createRouteHistory } from '../../src/telemetry/route-history.ts'
import { createVerifier } from '../../src/tenancy/api-key.ts'
import { type Authenticator, createAuthenticator } from '../../src/tenancy/authenticate.ts'
import { createBatchStore } from '../../src/tenancy/batches.ts'
import { noChanges } from '../../src/tenancy/changes.ts'
import { putCredential } from '../../src/tenancy/credentials.ts'
import { createUserCodes } from '../../src/tenancy/device-grants.ts'
import { createGuessLimits } from '../../src/tenancy/guess-limits.ts'
import { createIdempotency } from '../../src/tenancy/idempotency.ts'
import { createPasswords } from '../../src/tenancy/people.ts'
import { principalOfToken } from '../../src/tenancy/principal.ts'
import { createKeyRing } from '../../src/tenancy/sealing.ts'
import { loadAdminToken } from '../../src/tenancy/secrets.ts'
import { createPageBudget } from '../../src/web/page-budget.ts'
import type { TestEngine } from './engines.ts'
import { serveAnswers } from './http.ts'
import { openLedger, type TestClock } from './ledger.ts'
import type { Reply } from './manage.ts'

/** Seals what is stored. */
const testKeys = createKeyRing({ bytes: Uint8Array.from({ length: 32 }, (_, at) => at), source: 'test' })

export const managementToken = 'token-of-the-operator-0123456789'

export interface Ask {
  readonly body?: unknown
  /** undefined = the management token; null = none. */
  readonly token?: string | null
  readonly headers?: Readonly<Record<string, string>>
}

/** A thing of which a test says what it looks at; the rest is filled in. */
export interface Sketch {
  readonly id: string
  readonly [field: string]: unknown
}

export interface ManagementParts extends Partial<Omit<ManagementDependencies, 'catalog'>> {
  catalog?(): readonly Sketch[]
}

export interface TestManagement extends AsyncDisposable {
  readonly url: string
  readonly database: Database
  readonly ledger: Ledger
  readonly clock: TestClock
  readonly authenticator: Authenticator
  readonly defects: unknown[]
  /** Workspaces whose credentials were forgotten. */
  /** Changes to the timeouts of connections, in order: `GET /api/stats kept open`. */
  readonly sockets: readonly string[]
  readonly forgotten: string[]
  readonly logged: Sketch[]
  ask(method: string, path: string, ask?: Ask): Promise<Reply>
  /** POSTs, expects 201 and answers with the body. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  make(path: string, body: object): Promise<any>
  /** Another one over the same database, ended with this one. */
  secondReplica(): Pick<TestManagement, 'ask'>
}

export async function openManagement(
  engine: TestEngine,
  { catalog = () => [{ id: 'b/two' }, { id: 'a/one' }, { id: 'c/three' }], ...more }: ManagementParts = {},
): Promise<TestManagement> {
  const store = await engine.openStore()
  const { database } = store
  const { ledger, clock } = await openLedger(database)
  const pepper = new Uint8Array(32).fill(1)
  const authenticator = createAuthenticator({ database, pepper, clock })
  const defects: unknown[] = []
  const forgotten: string[] = []
  const logged: Sketch[] = []
  const deps: ManagementDependencies = {
    clock,
    database,
    ledger,
    idempotency: createIdempotency({ current: new Uint8Array(32).fill(2) }),
    webhooks: {
      guard: () => createEgressGuard({ allow: ['192.0.2.0/24'], resolve: async () => ['192.0.2.1'] }),
      secretsOf: () => ['whsec_c2VjcmV0'],
    },
    mailPolicy: () => ({ domains: ['allowed.example'] }),
    adminToken: loadAdminToken(
      new Secret(managementToken),
      openDataFolder(store.place.dataFolder, () => {}),
    ),
    computeVerifier: createVerifier(pepper),
    invalidate: authenticator.invalidate,
    changes: noChanges,
    credentials: testCredentials(forgotten),
    requests: testRequestLog(logged),
    providers: {
      list: () => [shownProvider],
      find: (id) => (id === 'acme' ? { ...shownProvider, routes: [] } : undefined),
      test: async (id) => (id === 'acme' ? { verdict: 'refused', status: 401 } : undefined),
      async testOwn(_workspaceId, id) {
        if (id === 'acme') return { verdict: 'accepted', status: 400 }
        throw new Failure('NOT_FOUND', 'There is none.')
      },
    },
    batches: {
      ...createBatchStore({ database, keys: testKeys }),
      cancel: async (batch) => batch,
    },
    routeHistory: createRouteHistory(database),
    storedResponses: { async *list() {} },
    configFile: testConfigFile(),
    contentRules: () => ({
      policies: [],
      contentExport: { url: undefined, sampleBasisPoints: 0, charactersMax: 0, redact: [], isAnnounced: false },
    }),
    settings: () => [{ name: 'server.port', value: '8080', source: 'default' }],
    modelsOf: async ({ models }) =>
      (models ?? ['a/one']).map((id) => ({
        ...catalogItem,
        id,
        own_key: id.startsWith('own/'),
        own_providers: id.startsWith('own/') ? ['acme'] : [],
      })),
    planOf: (model) => (model === 'acme/large' ? { model, mode: 'ordinary', candidates: [] } : undefined),
    prices: { find: (id) => (id === 'acme/large' ? unpriced : undefined), models: () => [], renew: async () => true },
    catalog: () => catalog().map((sketch) => ({ ...catalogItem, ...sketch })),
    tail: createRequestTail({ database, clock, onFault: (error) => void defects.push(error) }),
    passwords: createPasswords(),
    signIns: {
      userCodes: createUserCodes({ current: new Uint8Array(32).fill(3) }),
      count: () => {},
      onRefused: () => {},
      slowName: async () => undefined,
      guesses: createGuessLimits(clock),
    },
    createSignInLink: async () => ({ path: '/console?t=once', url: null }),
    linkTo: (secret) => `http://gate.example/console?i=${secret}`,
    tokenOf: (token) => principalOfToken(database.sql, token, clock.now()),
    version: '1.2.3',
    catalogIsPublic: () => true,
    bills: { sources: () => [] },
    budget: createPageBudget(clock),
    addressOf: () => '127.0.0.1',
    renderFailure: openaiChat.renderFailure,
    onDefect(error) {
      defects.push(error)
      return new Failure('INTERNAL', 'Tollgate failed.')
    },
    ...more,
  }
  const sockets: string[] = []
  const servers: ReturnType<typeof serve>[] = []
  const serveOne = () => {
    const server = serve(deps, sockets)
    servers.push(server)
    return server.url
  }
  const url = serveOne()
  const ask = createAsk(url, deps)
  return {
    url,
    database,
    ledger,
    clock,
    authenticator,
    defects,
    forgotten,
    logged,
    sockets,
    ask,
    async make(path, body) {
      const reply = await ask('POST', path, { body })
      expect([reply.status, reply.text]).toEqual([201, reply.text])
      return reply.body
    },
    secondReplica: () => ({ ask: createAsk(serveOne(), deps) }),
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.stop()
      await ledger.close()
      await store[Symbol.asyncDispose]()
    },
  }
}

function serve(deps: ManagementDependencies, sockets: string[]) {
  const api = createManagementApi(deps)
  return serveAnswers((request) => {
    const path = pathOf(request.url)
    const say = (what: string) => sockets.push(`${request.method} ${path} ${what}`)
    return api(request, path, { keepOpen: () => void say('kept open'), rearm: () => void say('rearmed') })
  })
}

function createAsk(url: string, deps: ManagementDependencies): TestManagement['ask'] {
  const matchRoute = createMatchRoute(managementRoutes(deps))
  return async (method, path, { body, token = managementToken, headers = {} } = {}) => {
    const isJson = body !== undefined && typeof body !== 'string'
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : (body as string) }),
    })
    // A feed has no end; that it was opened is all there is to see.
    const isFeed = response.ok && response.headers.get('content-type')?.startsWith('text/event-stream') === true
    const text = isFeed ? '' : await response.text()
    if (isFeed) await response.body?.cancel()
    const reply = {
      status: response.status,
      headers: response.headers,
      text,
      body: text === '' || !isJsonAnswer(response.headers) ? undefined : JSON.parse(text),
    }
    expect(response.headers.get('x-request-id')).toMatch(/^req_/)
    expect(response.headers.get('request-id')).toBe(response.headers.get('x-request-id'))
    if (response.status >= 400) {
      const hasFacts = response.status === 402 || reply.body.error.metadata?.reason === 'sign_in_too_old'
      const facts = hasFacts ? ['metadata'] : []
      expect(Object.keys(reply.body.error)).toEqual(['message', 'type', 'param', 'code', ...facts])
    }
    if (response.status < 400 && !isFeed) {
      // The schema drops unknown members, so an undescribed member shows as a difference.
      const { answer } = matchRoute(method, pathOf(url + path)).route
      if (answer) checkAnswer(answer, reply.body)
    }
    return reply
  }
}

function isJsonAnswer(headers: Headers): boolean {
  return headers.get('content-type') === 'application/json'
}

function checkAnswer(schema: { parse(value: unknown): unknown }, body: unknown): void {
  const parsed = schema.parse(body)
  const amounts = (_name: string, value: unknown) => (typeof value === 'bigint' ? 'amount' : value)
  expect(membersOf(JSON.parse(JSON.stringify(parsed, amounts)))).toEqual(membersOf(body))
}

/** The names of all members, in depth; the values were checked by the schema. */
function membersOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(membersOf)
  if (typeof value !== 'object' || value === null) return ''
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, membersOf(member)]))
}

function testCredentials(forgotten: string[]): Credentials {
  return {
    async destinationOf(provider, baseUrl) {
      if (provider !== 'acme') throw new Failure('NOT_FOUND', `There is no provider ${provider}.`)
      if (baseUrl?.startsWith('http:')) {
        throw new Failure('INVALID_REQUEST', '`base_url` must be https.', { param: 'base_url' })
      }
      return { origin: new URL(baseUrl ?? 'https://api.acme.test').origin, baseUrl }
    },
    read: (_provider, text) => readOwnCredential('bearer', text),
    put: (sql, credential) => putCredential(sql, credential, testKeys),
    forget: (workspaceId) => void forgotten.push(workspaceId),
  }
}

const shownProvider: ShownProvider = {
  id: 'acme',
  origin: 'environment',
  source: 'ACME_API_KEY',
  last4: '9f3e',
  address: 'api.acme.test',
  models: 1,
}

const unpriced: PriceInForce = { price: undefined, setter: 'catalog', source: 'built in', version: undefined }

export const catalogItem: Omit<CatalogItem, 'id'> = {
  name: 'A model',
  owned_by: 'acme',
  context_tokens: null,
  max_output_tokens: null,
  tags: [],
  released: null,
  price_source: null,
  price_version: null,
  source: 'built in',
  price: 'free',
  callable: true,
  routes: [],
}

const loggedRequest: Omit<LoggedRequest, 'id'> = {
  started_at: '2027-01-15T08:00:00.000Z',
  workspace_id: 'ws_1',
  project_id: 'prj_1',
  key_id: 'key_1',
  path: '/v1/messages',
  stream: false,
  model: null,
  requested_model: null,
  status: 200,
  code: null,
  cause: null,
  reason: null,
  provider: null,
  upstream_model: null,
  lane: null,
  candidates: [],
  attempts: [],
  warnings: [],
  notes: [],
  usage: null,
  price_version: null,
  cost: null,
  held: null,
  first_event_ms: null,
  total_ms: 0,
  client: null,
  session: null,
  agent: null,
  end_user: null,
  tags: {},
  batch_id: null,
}

function testRequestLog(logged: readonly Sketch[]): RequestLog {
  const listed = (sketch: Sketch): LoggedRequest => ({ ...loggedRequest, ...sketch })
  const explained = (sketch: Sketch): ExplainedRequest => ({
    ...{ ...loggedRequest, charge: null, transfers: [], plan_credits: [] },
    ...sketch,
  })
  const log: RequestLog = {
    async list({ limit, cursor, workspaceId, projectId, keyId }) {
      const found = logged.filter(
        (request) =>
          (cursor === undefined || request.id < cursor) &&
          (workspaceId === undefined || request.workspace_id === workspaceId) &&
          (projectId === undefined || request.project_id === projectId) &&
          (keyId === undefined || request.key_id === keyId),
      )
      const items = found.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit)
      return { items: items.map(listed), nextCursor: items.length < found.length ? items.at(-1)?.id : undefined }
    },
    pages: async (query) => everyPage((page) => log.list({ ...query, ...page })),
    async find(id) {
      const found = logged.find((request) => request.id === id)
      return found && explained(found)
    },
  }
  return log
}

/** Keeps aliases only, and refuses one that is called `refused`. */
function testConfigFile(): ManagementDependencies['configFile'] {
  const aliases: Record<string, string> = {}
  const read = () => ({
    path: 'tollgate.yaml',
    read_only: null,
    digest: 'd',
    providers: [],
    models: [],
    aliases,
    disabled_providers: [],
  })
  return {
    read,
    change(change) {
      if (change.aliases && 'refused' in change.aliases) throw new Failure('FORBIDDEN', 'The file is read-only.')
      for (const [name, model] of Object.entries(change.aliases ?? {})) if (model !== null) aliases[name] = model
      return read()
    },
    applied: async () => {},
  }
}
