import { expect, test } from 'bun:test'
import { received, responseOf } from '../../test/parts/http.ts'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { systemClock } from '../kernel/clock.ts'
import { noFailpoint } from '../kernel/failpoint.ts'
import { Failure } from '../kernel/failure.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { createMemoryLimiter } from '../limits/memory-limiter.ts'
import { createRetryBudget } from '../routing/failover.ts'
import { createHealth } from '../routing/health.ts'
import { createStickyRoutes } from '../routing/sticky.ts'
import { createLog } from '../telemetry/log.ts'
import type { GenerationKeys } from '../tenancy/idempotency.ts'
import { createCountTokens } from './count-tokens.ts'
import { createTicker } from './deadline.ts'
import { InputRatios } from './estimate.ts'
import { createKeptReasoning } from './kept-reasoning.ts'
import { PreviousTurns, UsualOutputs } from './learned.ts'
import { Rooms } from './rooms.ts'
import { createRunRequest, type RunDependencies, type RunRequest } from './run.ts'
import { PendingSettlements } from './stream.ts'

// A defect of ours in the middle of a request: the caller learns its id and nothing else, in its own shape, and the
// request is recorded like any other.

let logged = ''
const log = createLog({
  format: 'json',
  clock: systemClock,
  write: (text) => {
    logged += text
  },
})
const ids: string[] = []
const ticker = createTicker(systemClock, () => {})
const deps: RunDependencies = {
  clock: systemClock,
  log,
  ticker,
  pendingSettlements: new PendingSettlements(),
  unconfirmed: new Set(),
  authenticate: () => ({
    keyId: 'key_1',
    keyName: 'k',
    projectId: 'prj_1',
    workspaceId: 'ws_1',
    workspaceName: 'w',
    projectName: 'p',
    allow: [],
    limits: [],
    sources: undefined,
    sharesRoutes: false,
    priceList: undefined,
  }),
  catalog: {
    get current(): never {
      throw new Error('internal detail')
    },
  },
  settings: {
    current: {
      providerChoice: true,
      bodyBytesMax: 1000,
      storeResponses: false,
      endUsers: 'hashed',
      policies: [],
      contentExport: { url: undefined, sampleBasisPoints: 10_000, charactersMax: 1000, redact: [], isAnnounced: false },
      sessions: { cacheMarks: true, keepReasoning: true },
      retries: { attempts: 3, backoffMs: 0, totalMs: 8000, unavailableStatus: 404 },
    },
  },
  storedResponses: {
    keep: async () => {},
    find: async () => undefined,
    remove: async () => false,
    findByItem: async () => undefined,
    async *list() {},
  },
  ledger: {} as Ledger,
  health: createHealth({ clock: systemClock, random: () => 0 }),
  retryBudget: createRetryBudget({ clock: systemClock }),
  deriveCacheKey: () => 'key',
  tagContent: () => ({ tag: () => '', isValid: () => false }),
  keptReasoning: createKeptReasoning({ clock: systemClock, secret: new Uint8Array(32) }),
  sticky: createStickyRoutes({ clock: systemClock }),
  limiter: createMemoryLimiter(systemClock),
  credentials: { find: () => new Map() },
  idempotencyKeys: {} as GenerationKeys,
  random: () => 0,
  ratios: new InputRatios(),
  turns: new PreviousTurns(systemClock),
  outputs: new UsualOutputs(),
  rooms: new Rooms(ticker),
  requests: { write: () => {} },
  observe: () => {},
  streams: { opened() {}, closed() {} },
  reach: noFailpoint,
  onDefect(_, id) {
    ids.push(id)
    return new Failure('INTERNAL', 'Tollgate failed.')
  },
}
const connection = { keepOpen() {}, rearm() {}, drop() {}, address: () => undefined }

const calls: readonly [name: string, run: RunRequest, surface: Dialect][] = [
  ['a chat completion', createRunRequest(deps), openaiChat],
  ['a message', createRunRequest(deps), anthropicMessages],
  ['a token count', createCountTokens(deps), anthropicMessages],
]

test.each(calls)(
  'answers a defect in %s with a 500 without details, and records it under its id',
  async (_, run, surface) => {
    logged = ''
    const sent = {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}',
    }
    const request = received(new Request('http://gateway/', sent))
    const response = responseOf(await run(request, surface, '/path', connection))
    expect(response.status).toBe(500)
    const id = response.headers.get('x-request-id')
    expect(id).toBe(ids.at(-1) ?? 'none')
    const text = await response.text()
    expect(text).toContain('"INTERNAL"')
    expect(text).not.toContain('internal detail')
    log.flush()
    const records = logged.split('\n').filter(Boolean)
    expect(records).toHaveLength(1)
    expect(JSON.parse(records[0] ?? '')).toMatchObject({ request_id: id, status: 500, code: 'INTERNAL', key: 'key_1' })
  },
)
