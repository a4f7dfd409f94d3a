// What the gateway needs of a provider's API for batches, whatever its dialect, and the calls that they are made of. A call that
// fails is a BatchApiFault that says whether the same call may work later.

import type { Secret } from '../../kernel/secret.ts'
import { retryAfterMs } from '../../wire/retry-after.ts'
import { headersWith } from '../credentials.ts'
import type { Endpoint } from '../provider.ts'

/** Whose batches: an endpoint with the credential that they are created with. */
export interface BatchPlace {
  readonly endpoint: Endpoint
  readonly apiKey: Secret | undefined
  /** Ends the calls of a caller that no longer waits. */
  readonly signal?: AbortSignal | undefined
}

/** A batch that is to be created at the provider. */
export interface NewJob {
  /** Ours, with which it is found again. */
  readonly id: string
  /** Of the requests, as the dialect appends it to the base URL. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly requests: readonly JobRequest[]
}

export interface JobRequest {
  /** Ours: letters, digits, `_` and `-`. */
  readonly customId: string
  readonly body: Uint8Array
}

/** A job whose creation may have reached the provider. */
export interface SoughtJob {
  readonly id: string
  /** Of the first attempt to create it, in epoch milliseconds. */
  readonly createdAt: number
  readonly requests: number
  /** Whether the id of a provider belongs to another job of ours. */
  isKnown(upstreamId: string): Promise<boolean>
}

/** `undecided`: one may be it, which shows once that has ended. */
export type FoundJob = { readonly upstreamId: string } | 'none' | 'undecided'

export interface JobStatus {
  /** undefined = it runs. */
  readonly end: 'completed' | 'failed' | 'expired' | 'cancelled' | undefined
  /** Why it failed, in a word of the provider. */
  readonly why?: string | undefined
  /** What `results` reads and `remove` deletes. */
  readonly places: readonly string[]
  readonly inputs: readonly string[]
}

export interface JobResult {
  /** undefined = the line cannot be read. */
  readonly customId: string | undefined
  readonly outcome: 'answered' | 'expired' | 'cancelled'
  /** The HTTP status that a live call would have had. */
  readonly status: number
  /** The answer, or the error. */
  readonly body: Uint8Array<ArrayBuffer>
}

export interface BatchApi {
  /** Requests in one job. */
  readonly requestsMax: number
  /** Returns the provider's id. */
  create(place: BatchPlace, job: NewJob): Promise<string>
  find(place: BatchPlace, job: SoughtJob): Promise<FoundJob>
  status(place: BatchPlace, upstreamId: string): Promise<JobStatus>
  /** In any order. */
  results(place: BatchPlace, status: JobStatus): AsyncGenerator<JobResult>
  cancel(place: BatchPlace, upstreamId: string): Promise<void>
  /** Deletes what the provider keeps of it. */
  remove(place: BatchPlace, status: JobStatus): Promise<void>
}

/** `refused`: the request itself; `missing`: there is no such batch or file; `passing`: the same call may work later. */
export class BatchApiFault extends Error {
  constructor(
    readonly kind: 'refused' | 'missing' | 'passing',
    message: string,
    readonly status?: number,
    readonly retryAfterMs?: number,
  ) {
    super(message)
  }
}

// A job is looked for in this part of the provider's list.

export const pageSize = 100
export const pagesMax = 50
/** How far the clocks of the provider and of the gateway may differ: also by a wrong time zone. */
export const skewMs = 12 * 60 * 60_000

/** The job may come after what was read, so it must not count as missing at the provider. */
export function listTooLong(): BatchApiFault {
  return new BatchApiFault(
    'passing',
    `it lists more than ${pageSize * pagesMax} batches that are newer than a lost one`,
  )
}

const callTimeoutMs = 60_000
/** An upload of tens of megabytes, or a file of results. */
const longTimeoutMs = 10 * 60_000
const answerBytesMax = 8 * 2 ** 20
const wordMax = 100

export type JsonAnswer = Readonly<Record<string, unknown>>

export interface CallInput {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer> | FormData
  readonly isLong?: boolean
}

/** Returns the object that the provider answers. */
export async function callJson(place: BatchPlace, path: string, input: CallInput = {}): Promise<JsonAnswer> {
  const text = await textOf(await send(place, path, input)).catch(() => undefined)
  if (text === undefined) throw new BatchApiFault('passing', 'its answer broke off')
  if (text === 'too long') throw new BatchApiFault('passing', `its answer has over ${answerBytesMax} bytes`)
  const answer = parseObject(text)
  if (!answer) throw new BatchApiFault('passing', 'its answer is no JSON object')
  return answer
}

/** The bytes of a file, as they arrive. */
export async function* callBytes(
  place: BatchPlace,
  path: string,
  input: CallInput = {},
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const response = await send(place, path, { ...input, isLong: true })
  try {
    for await (const piece of response.body ?? []) yield piece as Uint8Array<ArrayBuffer>
  } catch {
    throw new BatchApiFault('passing', 'its file broke off')
  }
}

async function send({ endpoint, apiKey, signal: left }: BatchPlace, path: string, input: CallInput): Promise<Response> {
  const { method = 'GET', body, isLong } = input
  const headers: Record<string, string> = { ...headersWith(apiKey, endpoint, input.headers ?? {}) }
  // A form has its own, with the boundary.
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) delete headers['content-type']
  const inTime = AbortSignal.timeout(isLong ? longTimeoutMs : callTimeoutMs)
  const signal = left ? AbortSignal.any([inTime, left]) : inTime
  const init = { method, headers, redirect: 'manual', decompress: false, timeout: false, signal } as const
  let response: Response
  try {
    response = await fetch(endpoint.baseUrl + path, { ...init, ...(body !== undefined && { body }) })
  } catch {
    throw new BatchApiFault('passing', inTime.aborted ? 'it did not answer in time' : 'it cannot be reached')
  }
  if (response.status >= 200 && response.status < 300) return response
  throw await faultOf(response)
}

/** Requests that are wrong in themselves; whatever else a provider refuses, an operator may mend. */
const refusals: ReadonlySet<number> = new Set([400, 413, 422])

async function faultOf(response: Response): Promise<BatchApiFault> {
  const { status } = response
  const text = await textOf(response).catch(() => '')
  const { error } = parseObject(text) ?? {}
  const { code, type } = isObject(error) ? error : {}
  // What a provider says of a request may quote it, so only its word is passed on.
  const word = [code, type].find((each) => typeof each === 'string' && /^[\w.-]+$/.test(each)) as string | undefined
  const message = `status ${status}${word === undefined ? '' : `, ${word.slice(0, wordMax)}`}`
  const kind = status === 404 ? 'missing' : refusals.has(status) ? 'refused' : 'passing'
  return new BatchApiFault(kind, message, status, retryAfterMs(response.headers))
}

/** Reads no more than can be an answer. */
async function textOf({ body }: Response): Promise<string | 'too long'> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of body ?? []) {
    length += piece.length
    if (length > answerBytesMax) return 'too long'
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

export function isObject(value: unknown): value is JsonAnswer {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parseObject(text: string): JsonAnswer | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The id that a provider gave, which becomes part of paths. */
export function idIn(answer: JsonAnswer, name = 'id'): string {
  const id = answer[name]
  if (typeof id !== 'string' || !/^[\w.-]{1,200}$/.test(id)) {
    throw new BatchApiFault('passing', `its answer has no \`${name}\``)
  }
  return id
}

// ── Lines ──

const lineFeed = 0x0a
/** A result is at most this long, as a live reply is. */
const lineBytesMax = 64 * 2 ** 20

/** The lines of a file, without its byte order mark. One that is too long is yielded as its beginning, which is no JSON. */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let waiting: Uint8Array[] = []
  let length = 0
  const add = (piece: Uint8Array) => {
    if (length <= lineBytesMax) waiting.push(piece.slice())
    length += piece.length
  }
  let isFirst = true
  const take = () => {
    const whole = new Uint8Array(
      length > lineBytesMax ? (waiting[0]?.slice(0, lineStart) ?? []) : Buffer.concat(waiting),
    )
    const hasMark = isFirst && byteOrderMark.every((byte, at) => whole[at] === byte)
    isFirst = false
    waiting = []
    length = 0
    return hasMark ? whole.slice(byteOrderMark.length) : whole
  }
  for await (const piece of pieces) {
    let from = 0
    for (let end = piece.indexOf(lineFeed); end >= 0; end = piece.indexOf(lineFeed, from)) {
      add(piece.subarray(from, end))
      from = end + 1
      const line = take()
      if (line.length > 0) yield line
    }
    if (from < piece.length) add(piece.subarray(from))
  }
  const rest = take()
  if (rest.length > 0) yield rest
}

const lineStart = 1024
const byteOrderMark = [0xef, 0xbb, 0xbf]
