// Reads the pages of a provider's report: with GET only, a bounded number of bounded pages, and patience with 429 and 5xx. A
// report that cannot be read completely is a BillFault, and none of it counts.

import { retryAfterMs } from '../wire/retry-after.ts'
import { BillFault, type ExactJson, readExactJson } from './bill.ts'

export interface PageReader {
  readonly provider: string
  /** As long as a report takes that must be computed first. */
  readonly timeoutMs?: number
  pause(milliseconds: number): Promise<void>
}

export interface ReportRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** How to get a key that may read it. */
  readonly rights: string
}

const defaultTimeoutMs = 60_000
const pagesMax = 1_000
/** A month of a large organization has some ten thousand; each takes about a kilobyte. */
const rowsMax = 500_000
const pageBytesMax = 32 * 1024 * 1024
const triesMax = 6
const firstPauseMs = 1_000
/** Anthropic allows 90 reports an hour; a longer wait is left to the next run. */
const pauseMaxMs = 60_000

/** The items of all pages, and the members of the last page beside them. */
export async function readPages(
  reader: PageReader,
  request: ReportRequest,
): Promise<{ readonly items: readonly ExactJson[]; readonly last: JsonObject }> {
  const items: ExactJson[] = []
  const seen = new Set<string>()
  let page: string | undefined
  for (let count = 0; count < pagesMax; count++) {
    const url = page === undefined ? request.url : `${request.url}&page=${encodeURIComponent(page)}`
    const answer = await readPage(reader, { ...request, url })
    if (!Array.isArray(answer.data)) throw malformed(reader, 'has no list `data`')
    for (const item of answer.data) items.push(item)
    if (items.length > rowsMax) break
    if (answer.has_more !== true) return { items, last: answer }
    const next = answer.next_page
    if (typeof next !== 'string' || next === '') throw malformed(reader, 'says that there is more, but not where')
    if (seen.has(next)) throw malformed(reader, 'repeats a page')
    seen.add(next)
    page = next
  }
  const message = `The report of ${reader.provider} has more than ${pagesMax} pages or ${rowsMax} rows.`
  throw new BillFault(`${message} Reconcile fewer days at once.`)
}

export type JsonObject = { readonly [name: string]: ExactJson | undefined }

export function isObject(value: ExactJson | undefined): value is { readonly [name: string]: ExactJson } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The text of a member; empty = it is absent or null. */
export function textIn(object: JsonObject, name: string): string {
  const value = object[name]
  return typeof value === 'string' ? value : ''
}

export function malformed({ provider }: Pick<PageReader, 'provider'>, what: string): BillFault {
  return new BillFault(`The report of ${provider} ${what}. Nothing of it was stored; the next run reads it again.`)
}

async function readPage(reader: PageReader, request: ReportRequest): Promise<JsonObject> {
  for (let tries = 1; ; tries++) {
    const outcome = await tryPage(reader, request)
    if (!('retry' in outcome)) return outcome.page
    const { retry, afterMs } = outcome
    if (tries === triesMax || (afterMs ?? 0) > pauseMaxMs) {
      throw new BillFault(`${reader.provider} cannot answer its report now (${retry}). The next run tries again.`)
    }
    await reader.pause(afterMs ?? firstPauseMs * 2 ** (tries - 1))
  }
}

type Outcome = { readonly page: JsonObject } | { readonly retry: string; readonly afterMs: number | undefined }

async function tryPage(reader: PageReader, { url, headers, rights }: ReportRequest): Promise<Outcome> {
  const signal = AbortSignal.timeout(reader.timeoutMs ?? defaultTimeoutMs)
  let response: Response
  let text: string
  try {
    response = await fetch(url, { headers, redirect: 'error', signal })
    text = await boundedText(reader, response)
  } catch (error) {
    if (error instanceof BillFault) throw error
    return { retry: signal.aborted ? 'it took too long' : 'the connection failed', afterMs: undefined }
  }
  const { status } = response
  if (status === 401 || status === 403) {
    const message = `${reader.provider} refused the admin key with ${status}. ${rights}`
    throw new BillFault(message)
  }
  if (status === 429 || status >= 500) return { retry: `status ${status}`, afterMs: retryAfterMs(response.headers) }
  if (status !== 200) throw malformed(reader, `was answered with the status ${status}`)
  const page = readExactJson(text)
  // A proxy may cut an answer short.
  if (page === undefined) return { retry: 'its answer is not JSON', afterMs: undefined }
  if (!isObject(page)) throw malformed(reader, 'is no JSON object')
  return { page }
}

async function boundedText(reader: PageReader, response: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of response.body ?? []) {
    length += piece.length
    if (length > pageBytesMax) throw malformed(reader, `has a page of over ${pageBytesMax} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}
