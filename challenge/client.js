// Callers of a gateway, and what became of each call.

import { Agent, request as send } from 'node:http'

/** As long as a call may take. */
const patienceMs = 180_000

/**
 * @typedef {object} Outcome
 * @property {number} status 0 = there was no answer
 * @property {boolean} isComplete the whole answer arrived
 * @property {boolean} hasLeft the caller left, as it was told to
 * @property {string} text
 */

/** @typedef {'before' | 'first' | 'middle' | 'end'} Stage when a caller leaves: before an answer, or at this part of its text */

const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY })

/** How much of the text a caller has seen when it leaves, in events. @type {Record<Stage, number>} */
const eventsSeen = { before: 0, first: 1, middle: 10, end: 20 }

/**
 * @param {string} url
 * @param {{ headers: Record<string, string>, body: { stream?: boolean }, leaveAt?: Stage | undefined }} call
 * @returns {Promise<Outcome>}
 */
export function callGateway(url, { headers, body, leaveAt }) {
  return new Promise((resolve) => {
    /** @type {Outcome} */
    const outcome = { status: 0, isComplete: false, hasLeft: false, text: '' }
    const data = JSON.stringify(body)
    const framing = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(data) }
    const request = send(url, { method: 'POST', agent, headers: { ...framing, ...headers } }, (response) => {
      outcome.status = response.statusCode ?? 0
      response.setEncoding('utf8')
      response.on('data', (piece) => {
        outcome.text += piece
        if (leaveAt && outcome.status === 200 && eventsIn(outcome.text) >= eventsSeen[leaveAt]) leave()
      })
      response.on('end', () => {
        outcome.isComplete = outcome.status === 200 && isWhole(outcome.text, body.stream === true)
        end()
      })
      response.on('error', end)
      response.on('close', end)
    })
    const timer = setTimeout(() => request.destroy(), patienceMs)
    const end = () => {
      clearTimeout(timer)
      resolve(outcome)
    }
    const leave = () => {
      outcome.hasLeft = true
      request.destroy()
      end()
    }
    request.on('error', end)
    request.end(data, () => {
      // Long enough for the gateway to have called the provider, too short for an answer.
      if (leaveAt === 'before') setTimeout(leave, 60)
    })
  })
}

/** Which of the provider's answers it is; undefined = none, or not whole. @param {Outcome} outcome */
export function answerIn({ isComplete, text }) {
  const number = isComplete ? /answer-(\d+)/.exec(text)?.[1] : undefined
  return number === undefined ? undefined : Number(number)
}

/** Whether a part of an answer arrived. @param {Outcome} outcome */
export function hasText({ text }) {
  return /answer-\d/.test(text)
}

/** @param {string} text */
function eventsIn(text) {
  return text.match(/"content":\s?"\s?\w/g)?.length ?? 0
}

/** @param {string} text @param {boolean} isStream */
function isWhole(text, isStream) {
  if (!isStream) return text.includes('"choices"')
  return text.includes('[DONE]') && !text.includes('"error"')
}

/**
 * Runs the work so often, at most so many at a time.
 *
 * @template Result
 * @param {{ times: number, atOnce: number }} options
 * @param {(index: number) => Promise<Result>} work
 * @returns {Promise<Result[]>}
 */
export async function repeat({ times, atOnce }, work) {
  /** @type {Result[]} */
  const results = []
  let next = 0
  const worker = async () => {
    for (let index = next++; index < times; index = next++) results.push(await work(index))
  }
  await Promise.all(Array.from({ length: Math.min(times, atOnce) }, worker))
  return results
}

/**
 * A call to a gateway's management.
 *
 * @param {string} url
 * @param {{ method?: string, headers?: Record<string, string>, body?: unknown }} [options]
 */
export async function manage(url, { method = 'GET', headers = {}, body } = {}) {
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  const response = await fetch(url, {
    method,
    headers: { ...type, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text.slice(0, 500)}`)
  return JSON.parse(text)
}
