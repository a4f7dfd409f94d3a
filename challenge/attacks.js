// The attacks. Each begins with a new key that may spend one dollar, and ends with the calls that were made.

import { setTimeout as sleep } from 'node:timers/promises'
import { callGateway, repeat } from './client.js'
import { nanos } from './money.js'
import { text, usualTokens } from './upstream.js'

export const limit = '1.00'

/**
 * @typedef {import('./client.js').Outcome} Outcome
 * @typedef {import('./gateway.js').Gateway} Gateway
 * @typedef {import('./gateway.js').Key} Key
 * @typedef {import('./upstream.js').Upstream} Upstream
 */

/**
 * @typedef {object} Context
 * @property {Gateway} gateway
 * @property {Upstream} upstream
 * @property {Key} key
 * @property {() => Promise<bigint>} spent what the gateway says, once it does not change any more
 */

/**
 * @typedef {object} Attack
 * @property {string} title
 * @property {Partial<import('./upstream.js').Behavior>} [behavior]
 * @property {readonly (keyof Gateway)[]} [needs] what the gateway must be able to do
 * @property {string} [clock] the gateway starts at this time
 * @property {'day'} [window] of the limit; absent = a month
 * @property {string} [mayCharge] what may be spent in all; absent = the limit
 * @property {'counted' | 'estimated'} charges whether a gateway can know the cost of each call to the nano-dollar
 * @property {(context: Context) => Promise<Outcome[]>} run
 */

// ── Calls ──

/** @typedef {{ stream?: boolean, isCapped?: boolean, leaveAt?: import('./client.js').Stage, idempotencyKey?: string }} CallOptions */

let calls = 0

/** @param {Context} context @param {CallOptions} [options] */
async function call({ gateway, key }, { stream = false, isCapped = true, leaveAt, idempotencyKey } = {}) {
  // No two prompts are equal, so that no cache answers; except under one idempotency key, where they have to be.
  const words = `${text(usualTokens.input - 8)} ${idempotencyKey ?? `call ${++calls}`}`
  const body = {
    model: gateway.model,
    stream,
    messages: [{ role: 'user', content: words }],
    ...(isCapped && { max_tokens: usualTokens.output }),
  }
  const headers = idempotencyKey === undefined ? key.headers : { ...key.headers, 'idempotency-key': idempotencyKey }
  return await callGateway(gateway.url(), { headers, body, leaveAt })
}

/** @param {number} times @param {CallOptions} [options] @returns {Attack['run']} */
function burst(times, options) {
  return async (context) => await repeat({ times, atOnce: times }, async () => await call(context, options))
}

/** @param {number} times @param {number} atOnce @param {CallOptions} [options] @returns {Attack['run']} */
function inTurn(times, atOnce, options) {
  return async (context) => await repeat({ times, atOnce }, async () => await call(context, options))
}

/**
 * Calls go on until enough was served; then the event happens, and goes on while calls do.
 *
 * @param {Context} context
 * @param {{ served: string, calls?: number, atOnce?: number, options?: CallOptions, event: () => Promise<void> }} terms
 */
async function during(context, { served, calls: times = 400, atOnce = 20, options, event }) {
  const reached = nanos(served)
  /** @type {Promise<void> | undefined} */
  let happening
  const outcomes = await repeat({ times, atOnce }, async () => {
    if (context.upstream.served().amount >= reached) happening ??= event()
    const outcome = await call(context, options)
    // A refusal takes no time; without a pause all calls would be over before the event is.
    if (outcome.status !== 200) await sleep(150)
    return outcome
  })
  await happening
  return outcomes
}

// ── The table ──

/** @type {Record<string, Attack>} */
export const attacks = {
  burst: {
    title: '400 calls at once',
    charges: 'counted',
    run: burst(400),
  },
  'burst-uncapped': {
    title: '400 calls at once, without `max_tokens`',
    charges: 'counted',
    run: burst(400, { isCapped: false }),
  },
  'burst-long': {
    title: '100 calls at once, without `max_tokens`, answers of 4,000 tokens',
    behavior: { outputTokens: 4_000 },
    charges: 'counted',
    run: burst(100, { isCapped: false }),
  },
  streams: {
    title: '200 streams at once',
    charges: 'counted',
    run: burst(200, { stream: true }),
  },
  'last-cent': {
    title: '100 streams begun at once when $0.01 is left',
    behavior: { answerMs: 20 },
    charges: 'counted',
    async run(context) {
      const before = await inTurn(99, 4)(context)
      await context.spent()
      return [...before, ...(await burst(100, { stream: true })(context))]
    },
  },
  'last-cent-long': {
    title: '100 streams of 4,000 tokens begun at once when $0.10 is left, without `max_tokens`',
    behavior: { answerMs: 20, eventMs: 100, outputTokens: 4_000 },
    charges: 'counted',
    async run(context) {
      const before = await inTurn(90, 4)(context)
      await context.spent()
      return [...before, ...(await burst(100, { stream: true, isCapped: false })(context))]
    },
  },
  'leave-before': {
    title: '300 callers that leave before the answer',
    charges: 'estimated',
    run: inTurn(300, 20, { leaveAt: 'before' }),
  },
  'leave-first': {
    title: '300 callers that leave a stream at its first word',
    charges: 'estimated',
    run: inTurn(300, 20, { stream: true, leaveAt: 'first' }),
  },
  'leave-middle': {
    title: '300 callers that leave a stream in the middle',
    behavior: { eventMs: 20 },
    charges: 'estimated',
    run: inTurn(300, 20, { stream: true, leaveAt: 'middle' }),
  },
  'leave-end': {
    title: '300 callers that leave a stream after its last word',
    behavior: { eventMs: 20, tailMs: 300 },
    charges: 'estimated',
    run: inTurn(300, 20, { stream: true, leaveAt: 'end' }),
  },
  'usage-unasked': {
    title: 'usage only on request, and the caller does not request it',
    behavior: { firstMs: 20, eventMs: 5 },
    charges: 'counted',
    run: inTurn(200, 5, { stream: true }),
  },
  'usage-never': {
    title: 'streams whose usage is never reported',
    behavior: { firstMs: 20, eventMs: 5, usage: 'never' },
    charges: 'estimated',
    run: inTurn(200, 5, { stream: true }),
  },
  'usage-never-unary': {
    title: 'answers whose usage is never reported',
    behavior: { answerMs: 50, usage: 'never' },
    charges: 'estimated',
    run: inTurn(200, 5),
  },
  'usage-late': {
    title: 'usage 1.5 seconds after the last word',
    behavior: { firstMs: 20, eventMs: 5, usage: 'late' },
    charges: 'counted',
    run: inTurn(160, 20, { stream: true }),
  },
  'usage-twice': {
    title: 'usage reported twice in each stream',
    behavior: { firstMs: 20, eventMs: 5, usage: 'twice' },
    charges: 'counted',
    run: inTurn(200, 5, { stream: true }),
  },
  'usage-absurd': {
    title: 'a usage of 1.8 billion tokens for each call',
    behavior: { answerMs: 50, usage: 'absurd' },
    charges: 'estimated',
    run: inTurn(60, 5),
  },
  failures: {
    title: 'a provider that fails at every second call',
    behavior: { answerMs: 20, failEvery: 2 },
    charges: 'counted',
    run: inTurn(150, 5),
  },
  'one-key': {
    title: '20 calls with one idempotency key',
    behavior: { answerMs: 200 },
    needs: ['isOneCallPerKey'],
    mayCharge: '0.01',
    charges: 'counted',
    async run(context) {
      const options = { idempotencyKey: `challenge-${Date.now()}-${Math.random()}` }
      return [...(await burst(10, options)(context)), ...(await inTurn(10, 1, options)(context))]
    },
  },
  'one-key-crash': {
    title: '60 idempotency keys, each repeated until it is answered, and a crash',
    needs: ['isOneCallPerKey', 'kill', 'restart'],
    mayCharge: '0.60',
    charges: 'counted',
    run: keysAndCrash,
  },
  crash: {
    title: 'a crash under load, then 300 more calls',
    behavior: { answerMs: 100 },
    needs: ['kill', 'restart'],
    charges: 'counted',
    run: async (context) => await endUnderLoad(context, async () => await context.gateway.kill?.()),
  },
  restart: {
    title: 'a restart under load, then 300 more calls',
    behavior: { answerMs: 100 },
    needs: ['terminate', 'restart'],
    charges: 'counted',
    run: async (context) => await endUnderLoad(context, async () => await context.gateway.terminate?.()),
  },
  'crash-streams': {
    title: 'a crash while 60 streams run, then 200 more calls',
    behavior: { eventMs: 100 },
    needs: ['kill', 'restart'],
    charges: 'estimated',
    async run(context) {
      const event = async () => {
        await context.gateway.kill?.()
        await context.gateway.restart?.()
      }
      const terms = { served: '0.20', calls: 120, atOnce: 60, options: { stream: true }, event }
      return [...(await during(context, terms)), ...(await inTurn(200, 20)(context))]
    },
  },
  midnight: {
    title: 'a daily limit, and midnight in the middle of the load',
    clock: '2026-01-15 23:59:45',
    window: 'day',
    mayCharge: '2.00',
    behavior: { answerMs: 200 },
    charges: 'counted',
    run: aroundMidnight,
  },
  'database-stops': {
    title: 'the database stands still for ten seconds under load',
    behavior: { answerMs: 100 },
    needs: ['database'],
    charges: 'counted',
    run: async (context) =>
      await during(context, { served: '0.30', event: standStill(context.gateway.database, 10_000) }),
  },
  'cache-stops': {
    title: 'the cache stands still for ten seconds under load',
    behavior: { answerMs: 100 },
    needs: ['cache'],
    charges: 'counted',
    run: async (context) => await during(context, { served: '0.30', event: standStill(context.gateway.cache, 10_000) }),
  },
  'database-crash': {
    title: 'the database is killed under load and starts again after five seconds',
    behavior: { answerMs: 100 },
    needs: ['database'],
    charges: 'counted',
    run: async (context) => await during(context, { served: '0.30', event: killAndStart(context.gateway.database) }),
  },
  'cache-crash': {
    title: 'the cache is killed under load and starts again after five seconds, empty',
    behavior: { answerMs: 100 },
    needs: ['cache'],
    charges: 'counted',
    run: async (context) => await during(context, { served: '0.30', event: killAndStart(context.gateway.cache) }),
  },
  'lower-limit': {
    title: 'the limit is lowered to $0.50 under load',
    behavior: { answerMs: 100 },
    needs: ['limit'],
    mayCharge: '0.50',
    charges: 'counted',
    run: async (context) =>
      await during(context, {
        served: '0.10',
        atOnce: 5,
        calls: 150,
        event: async () => await context.gateway.limit?.(context.key, '0.50'),
      }),
  },
  'price-rises': {
    title: 'the prices are doubled under load',
    behavior: { answerMs: 100 },
    needs: ['price'],
    charges: 'estimated',
    run: async (context) => {
      const event = async () => await context.gateway.price?.({ input: '4.00', output: '16.00' })
      const outcomes = await during(context, { served: '0.30', event })
      await context.gateway.price?.({ input: '2.00', output: '8.00' })
      return outcomes
    },
  },
}

// ── Longer ones ──

/** @param {Context} context @param {() => Promise<void>} stop */
async function endUnderLoad(context, stop) {
  const event = async () => {
    await stop()
    await context.gateway.restart?.()
  }
  return [...(await during(context, { served: '0.50', calls: 200, event })), ...(await inTurn(300, 20)(context))]
}

/** @param {Context} context */
async function keysAndCrash(context) {
  const started = Date.now()
  const event = async () => {
    await context.gateway.kill?.()
    await context.gateway.restart?.()
  }
  /** @type {Promise<void> | undefined} */
  let happening
  const outcomes = await repeat({ times: 60, atOnce: 20 }, async (index) => {
    const options = { idempotencyKey: `challenge-${started}-${index}` }
    /** @type {Outcome[]} */
    const tried = []
    while (tried.length < 60 && !tried.some(({ isComplete }) => isComplete)) {
      tried.push(await call(context, options))
      if (index >= 25) happening ??= event()
      await sleep(100)
    }
    return tried
  })
  await happening
  return outcomes.flat()
}

/** @param {Context} context */
async function aroundMidnight(context) {
  // The day begins anew after 15 seconds at the latest; then there is time to spend it again.
  const until = Date.now() + 30_000
  /** @type {Outcome[]} */
  const outcomes = []
  const worker = async () => {
    while (Date.now() < until) {
      const outcome = await call(context)
      outcomes.push(outcome)
      if (outcome.status !== 200) await sleep(100)
    }
  }
  await Promise.all(Array.from({ length: 20 }, worker))
  return outcomes
}

/** @param {import('./programs.js').Program | undefined} server @param {number} ms */
function standStill(server, ms) {
  return async () => {
    server?.pause()
    await sleep(ms)
    server?.resume()
  }
}

/** @param {import('./programs.js').Program | undefined} server */
function killAndStart(server) {
  return async () => {
    await server?.end('SIGKILL')
    await sleep(5_000)
    await server?.start()
  }
}
