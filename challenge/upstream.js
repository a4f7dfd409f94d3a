// The provider: an OpenAI-compatible server that counts what it really served. A gateway cannot know more than this; what
// it says was spent is compared with it.

import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/** What a million tokens cost, in dollars. Every gateway is configured with these prices. */
export const prices = { input: '2.00', output: '8.00' }
/** The same for one token. */
export const perToken = { input: '0.000002', output: '0.000008' }
const nanosPerToken = { input: 2_000n, output: 8_000n }

/** Of every prompt and of a usual answer; such a call costs one cent. */
export const usualTokens = { input: 1_000, output: 1_000 }

export const upstreamModel = 'm1'

/**
 * How the provider behaves.
 *
 * @typedef {object} Behavior
 * @property {number} answerMs how long an answer that is not streamed takes
 * @property {number} firstMs the time to the first event of a stream
 * @property {number} events how many events the text of a stream has
 * @property {number} eventMs the time between two of them
 * @property {number} tailMs the time between the last text and the finish
 * @property {number} outputTokens how long an answer is that no cap shortens
 * @property {'always' | 'asked' | 'never' | 'late' | 'twice' | 'absurd'} usage when a usage is reported; `asked`: in
 *   streams only if the request says so, as OpenAI does
 * @property {number} failEvery every how many calls one fails with status 500; 0 = none
 */

/** @type {Behavior} */
const usual = {
  answerMs: 300,
  firstMs: 100,
  events: 20,
  eventMs: 50,
  tailMs: 0,
  outputTokens: usualTokens.output,
  usage: 'asked',
  failEvery: 0,
}

/**
 * One call as the provider saw it.
 *
 * @typedef {object} Served
 * @property {number} input tokens that were read; 0 = the caller left before anything was generated
 * @property {number} output tokens that were sent
 * @property {number | undefined} cap the limit of output tokens in the request
 * @property {boolean} isOver
 */

/** @typedef {Awaited<ReturnType<typeof startUpstream>>} Upstream */

const words =
  'the of and to in is that it was for on are as with his they at be this from have or by one had not'.split(' ')

/** @param {number} count */
export function text(count) {
  return Array.from({ length: count }, (_, index) => words[index % words.length]).join(' ')
}

/** @param {number} port 0 = any */
export async function startUpstream(port = 0) {
  let behavior = usual
  /** @type {Served[]} */
  let calls = []
  const server = createServer((request, response) => {
    serve(request, response, behavior, calls).catch(() => response.destroy())
  })
  server.keepAliveTimeout = 60_000
  await new Promise((resolve) => server.listen({ port, host: '127.0.0.1', backlog: 4096 }, () => resolve(undefined)))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the provider has no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    /** @param {Partial<Behavior>} changed */
    behave(changed) {
      behavior = { ...usual, ...changed }
    },
    /** Forgets what was served. */
    reset() {
      calls = []
    },
    served: () => ({
      calls: calls.length,
      answers: calls.filter(({ output }) => output > 0).length,
      amount: calls.reduce((sum, call) => sum + priceOf(call), 0n),
    }),
    /** What these answers cost, each counted once. @param {Iterable<number>} numbers */
    costOf: (numbers) => [...new Set(numbers)].reduce((sum, number) => sum + priceOf(calls[number]), 0n),
    /** Resolves when no call runs any more. */
    async idle() {
      for (let tries = 0; tries < 600 && calls.some(({ isOver }) => !isOver); tries++) await sleep(100)
    },
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** A provider bills the prompt as soon as it generates. @param {Served | undefined} call */
function priceOf(call) {
  const { input, output } = call ?? { input: 0, output: 0 }
  return output === 0 ? 0n : BigInt(input) * nanosPerToken.input + BigInt(output) * nanosPerToken.output
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {Behavior} behavior
 * @param {Served[]} calls
 */
async function serve(request, response, behavior, calls) {
  let body = ''
  for await (const piece of request) body += piece
  if (request.method !== 'POST') {
    return json(response, {
      object: 'list',
      data: [{ id: upstreamModel, object: 'model', created: 0, owned_by: 'challenge' }],
    })
  }
  const asked = JSON.parse(body)
  const cap = asked.max_completion_tokens ?? asked.max_tokens
  const call = { input: usualTokens.input, output: 0, cap, isOver: false }
  calls.push(call)
  const hasLeft = () => response.destroyed
  response.on('close', () => {
    call.isOver = true
  })
  if (behavior.failEvery > 0 && calls.length % behavior.failEvery === 0) {
    return json(response, { error: { message: 'The server had an error.', type: 'server_error' } }, 500)
  }
  const tokens = Math.min(behavior.outputTokens, cap ?? behavior.outputTokens)
  const answer = new AnswerOf(asked, { number: calls.length - 1, tokens }, behavior)
  if (asked.stream) await answer.stream(response, call, hasLeft)
  else await answer.whole(response, call, hasLeft)
}

/** @param {import('node:http').ServerResponse} response @param {object} body */
function json(response, body, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

class AnswerOf {
  #id = `chatcmpl-${Math.random().toString(36).slice(2)}`
  #created = Math.floor(Date.now() / 1000)

  /**
   * @param {{ model: string, stream_options?: { include_usage?: boolean } }} asked
   * @param {{ number: number, tokens: number }} size
   * @param {Behavior} behavior
   */
  constructor(asked, { number, tokens }, behavior) {
    this.asked = asked
    /** By which a delivered answer is recognised, whatever the gateway does to ids. */
    this.mark = `answer-${number}`
    this.tokens = tokens
    this.behavior = behavior
  }

  /** @param {import('node:http').ServerResponse} response @param {Served} call @param {() => boolean} hasLeft */
  async whole(response, call, hasLeft) {
    await sleep(this.behavior.answerMs)
    if (hasLeft()) return
    call.output = this.tokens
    const message = { role: 'assistant', content: `${this.mark} ${text(this.tokens - 1)}` }
    const choices = [{ index: 0, message, finish_reason: this.#finish }]
    json(response, {
      ...this.#head('chat.completion'),
      choices,
      ...(this.behavior.usage === 'never' ? {} : this.#usage()),
    })
  }

  /** @param {import('node:http').ServerResponse} response @param {Served} call @param {() => boolean} hasLeft */
  async stream(response, call, hasLeft) {
    const { events, eventMs, firstMs, tailMs, outputTokens, usage } = this.behavior
    await sleep(firstMs)
    if (hasLeft()) return
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    this.#event(response, [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }])
    const perEvent = Math.ceil(outputTokens / events)
    const first = `${this.mark} `
    while (call.output < this.tokens) {
      if (hasLeft()) return
      const count = Math.min(perEvent, this.tokens - call.output)
      const content = `${call.output === 0 ? first : ''}${text(count)} `
      this.#event(response, [{ index: 0, delta: { content }, finish_reason: null }])
      call.output += count
      await sleep(eventMs)
    }
    await sleep(tailMs)
    if (hasLeft()) return
    this.#event(response, [{ index: 0, delta: {}, finish_reason: this.#finish }])
    const isAsked = this.asked.stream_options?.include_usage === true
    if (usage === 'late') await sleep(1_500)
    if (usage !== 'never' && (usage !== 'asked' || isAsked)) this.#event(response, [], this.#usage())
    if (usage === 'twice') this.#event(response, [], this.#usage())
    response.end('data: [DONE]\n\n')
  }

  get #finish() {
    return this.tokens < this.behavior.outputTokens ? 'length' : 'stop'
  }

  /** @param {string} object */
  #head(object) {
    return { id: this.#id, object, created: this.#created, model: this.asked.model }
  }

  #usage() {
    const isAbsurd = this.behavior.usage === 'absurd'
    const [prompt_tokens, completion_tokens] = isAbsurd ? [900_000_000, 900_000_000] : [usualTokens.input, this.tokens]
    return { usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens } }
  }

  /** @param {import('node:http').ServerResponse} response @param {object[]} choices */
  #event(response, choices, more = {}) {
    response.write(`data: ${JSON.stringify({ ...this.#head('chat.completion.chunk'), choices, ...more })}\n\n`)
  }
}
