import { expect, test } from 'bun:test'
import { received } from '../../test/parts/http.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { systemClock } from '../kernel/clock.ts'
import { Failure, retryHeaders } from '../kernel/failure.ts'
import { createMemoryLimiter } from '../limits/memory-limiter.ts'
import { createLog } from '../telemetry/log.ts'
import type { Caller } from '../tenancy/caller.ts'
import { BodyFault } from '../wire/read-body.ts'
import { type AdmitDependencies, admit } from './admit.ts'
import type { ClientRequest } from './client-request.ts'
import { Exchange } from './exchange.ts'
import { endRefused, endWithError, type SettlementDependencies } from './settlement.ts'
import { Refusal } from './stages.ts'

const caller: Caller = {
  keyId: 'key_1',
  keyName: 'k',
  projectId: 'prj_1',
  workspaceId: 'ws_1',
  workspaceName: 'w',
  projectName: 'p',
  allow: [],
  limits: [{ kind: 'key', id: 'key_1', name: 'k', limits: { concurrentRequests: 1 } }],
  sources: undefined,
  sharesRoutes: false,
  priceList: undefined,
}

/** Complete, so that a setting that `admit` reads from now on must be added here. */
const settings: AdmitDependencies['settings'] = {
  current: {
    providerChoice: true,
    bodyBytesMax: 1_000_000,
    storeResponses: false,
    endUsers: 'hashed',
    sessions: { cacheMarks: true, keepReasoning: false },
  },
}

function createBench() {
  const limiter = createMemoryLimiter(systemClock)
  const deps = {
    authenticate: () => caller,
    limiter,
    settings,
    random: () => 0.5,
    catalog: {
      get current() {
        throw new Error('a defect')
      },
    },
    credentials: { find: () => new Map() },
  } as unknown as AdmitDependencies
  const log = createLog({ format: 'json', clock: systemClock, write: () => {} })
  const connection = { keepOpen() {}, rearm() {}, drop() {}, address: () => undefined }
  const settling = { clock: systemClock, log, requests: { write: () => {} }, observe: () => {}, unconfirmed: new Set() }
  const start = (http: ClientRequest) => new Exchange(systemClock, http, openaiChat, '/path', connection)
  return { limiter, deps, start, settling: settling as unknown as SettlementDependencies }
}

function upload(bytes: number, headers: Record<string, string> = {}): ClientRequest {
  const body = `{"model":"m","messages":[{"role":"user","content":"${'x'.repeat(bytes)}"}]}`
  const all = { 'content-type': 'application/json', 'content-length': String(body.length), ...headers }
  return received(new Request('http://gateway/', { method: 'POST', headers: all, body }))
}

/** A request whose body the server gives up. */
function givenUp(reason: BodyFault['reason']): ClientRequest {
  return Object.assign(upload(100_000), { bytes: () => Promise.reject(new BodyFault(reason)) })
}

test.each([
  ['no-room', 'OVERLOADED', 503, { 'retry-after': '2', 'retry-after-ms': '2000' }],
  ['too-slow', 'REQUEST_TIMEOUT', 408, {}],
] as const)('refuses a body that the server gives up: %s is %s', async (reason, code, status, headers) => {
  const { deps, start } = createBench()
  const refusal = await admit(deps, start(givenUp(reason)), openaiChat.readEnvelope, () => 0)
  if (!(refusal instanceof Refusal)) throw new Error('was admitted')
  const { failure } = refusal
  expect([failure.code, failure.status]).toEqual([code, status])
  expect(retryHeaders(failure)).toEqual(headers)
})

test('frees the concurrency slot however the request ends', async () => {
  const { limiter, deps, start, settling } = createBench()
  const isFull = () => limiter.arrive(caller.limits).kind === 'refused'
  const endings: readonly [http: ClientRequest, status: number][] = [
    [upload(1, { 'content-type': 'text/plain' }), 415],
    [upload(1, { 'content-encoding': 'gzip' }), 415],
    [upload(1_000_000), 413],
    [
      received(
        new Request('http://gateway/', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' }),
      ),
      400,
    ],
    [givenUp('no-room'), 503],
  ]
  for (const [http, status] of endings) {
    const each = start(http)
    const refusal = await admit(deps, each, openaiChat.readEnvelope, () => 0)
    expect(refusal).toMatchObject({ failure: { status } })
    endRefused(settling, each, refusal as Refusal)
    const next = limiter.arrive(caller.limits)
    expect([status, next.kind]).toEqual([status, 'arrived'])
    if (next.kind === 'arrived') next.end()
  }
  // Also after a defect.
  const each = start(upload(1))
  await expect(admit(deps, each, openaiChat.readEnvelope, () => 0)).rejects.toThrow('a defect')
  expect(isFull()).toBe(true)
  endWithError(settling, each, new Failure('INTERNAL', 'failed'))
  expect(isFull()).toBe(false)
})
