// Batches of hosts that speak Anthropic's Messages API: one call creates a batch with all its requests.
// https://platform.claude.com/docs/en/api/messages/batches, 2026-11

import { JsonFault, readJson } from '../../wire/json.ts'
import {
  type BatchApi,
  type BatchPlace,
  callBytes,
  callJson,
  idIn,
  isObject,
  type JobResult,
  type JobStatus,
  type JsonAnswer,
  linesOf,
  listTooLong,
  pageSize,
  pagesMax,
  skewMs,
} from './batch-api.ts'

const version = { 'anthropic-version': '2023-06-01' }
const path = '/v1/messages/batches'

const encoder = new TextEncoder()

export const messageBatches: BatchApi = {
  requestsMax: 100_000,
  async create(place, { headers, requests }) {
    const parts: Uint8Array[] = [encoder.encode('{"requests":[')]
    for (const [at, { customId, body }] of requests.entries()) {
      const start = `${at === 0 ? '' : ','}{"custom_id":${JSON.stringify(customId)},"params":`
      parts.push(encoder.encode(start), body, encoder.encode('}'))
    }
    parts.push(encoder.encode(']}'))
    const body = new Uint8Array(Buffer.concat(parts))
    return idIn(
      await callJson(place, path, { method: 'POST', headers: { ...version, ...headers }, body, isLong: true }),
    )
  },
  /** A batch has no name of ours, but its results do. So one of the same size and time is looked at once it has ended. */
  async find(place, { id, createdAt, requests, isKnown }) {
    let isUndecided = false
    for await (const batch of listed(place)) {
      if (Date.parse(String(batch.created_at)) < createdAt - skewMs) break
      const upstreamId = idIn(batch)
      if (sizeOf(batch) !== requests || (await isKnown(upstreamId))) continue
      if (batch.processing_status !== 'ended') isUndecided = true
      else if (await isOf(place, upstreamId, id)) return { upstreamId }
    }
    return isUndecided ? 'undecided' : 'none'
  },
  async status(place, upstreamId): Promise<JobStatus> {
    const batch = await callJson(place, `${path}/${upstreamId}`, { headers: version })
    const hasEnded = batch.processing_status === 'ended'
    return { end: hasEnded ? 'completed' : undefined, places: [upstreamId], inputs: [] }
  },
  // Not from `results_url`: the credential is only sent to the configured host.
  async *results(place, { places }) {
    for (const upstreamId of places) {
      for await (const line of linesOf(callBytes(place, `${path}/${upstreamId}/results`, { headers: version })))
        yield readResult(line)
    }
  },
  async cancel(place, upstreamId) {
    await callJson(place, `${path}/${upstreamId}/cancel`, { method: 'POST', headers: version })
  },
  async remove(place, { places }) {
    for (const upstreamId of places)
      await callJson(place, `${path}/${upstreamId}`, { method: 'DELETE', headers: version })
  },
}

/** Newest first. */
async function* listed(place: BatchPlace): AsyncGenerator<JsonAnswer> {
  let after = ''
  for (let page = 0; page < pagesMax; page++) {
    const answer = await callJson(place, `${path}?limit=${pageSize}${after}`, { headers: version })
    const data: readonly unknown[] = Array.isArray(answer.data) ? answer.data : []
    for (const item of data) if (isObject(item)) yield item
    if (answer.has_more !== true || data.length === 0) return
    after = `&after_id=${idIn(answer, 'last_id')}`
  }
  throw listTooLong()
}

function sizeOf({ request_counts: counts }: JsonAnswer): number {
  if (!isObject(counts)) return 0
  return Object.values(counts).reduce<number>((sum, count) => sum + (typeof count === 'number' ? count : 0), 0)
}

async function isOf(place: BatchPlace, upstreamId: string, jobId: string): Promise<boolean> {
  const pieces = callBytes(place, `${path}/${upstreamId}/results`, { headers: version })
  for await (const line of linesOf(pieces)) return readResult(line).customId?.startsWith(`${jobId}-`) === true
  return false
}

const statuses: Readonly<Record<string, number>> = {
  ...{ invalid_request_error: 400, authentication_error: 401, billing_error: 402, permission_error: 403 },
  ...{ not_found_error: 404, request_too_large: 413, rate_limit_error: 429, timeout_error: 504, overloaded_error: 529 },
}

function readResult(line: Uint8Array<ArrayBuffer>): JobResult {
  const none = new Uint8Array(0)
  const read = readJson(line)
  const result = read instanceof JsonFault ? undefined : read.get('result')
  const customId = read instanceof JsonFault ? undefined : read.get('custom_id')?.string
  const type = result?.get('type')?.string
  if (type === 'canceled') return { customId, outcome: 'cancelled', status: 0, body: none }
  if (type === 'expired') return { customId, outcome: 'expired', status: 0, body: none }
  const answer = result?.get(type === 'succeeded' ? 'message' : 'error')
  if (answer?.kind !== 'object') return { customId: undefined, outcome: 'answered', status: 0, body: none }
  const word = answer.get('error')?.get('type')?.string ?? answer.get('type')?.string ?? ''
  const status = type === 'succeeded' ? 200 : (statuses[word] ?? 500)
  return { customId, outcome: 'answered', status, body: line.slice(answer.start, answer.end) }
}
