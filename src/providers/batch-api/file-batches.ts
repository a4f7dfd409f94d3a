// Batches of hosts that speak OpenAI's APIs: a file of requests is uploaded, and a batch is created of it.
// https://platform.openai.com/docs/api-reference/batch, 2026-11

import { JsonFault, readJson } from '../../wire/json.ts'
import {
  type BatchApi,
  BatchApiFault,
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

/** Of the metadata: our id. */
const nameMember = 'tollgate_job'

const encoder = new TextEncoder()

export const fileBatches: BatchApi = {
  requestsMax: 50_000,
  async create(place, { id, path, requests }) {
    // The path in a line is that of the API, wherever the host has it.
    const url = `/v1${path}`
    const parts: Uint8Array[] = []
    for (const { customId, body } of requests) {
      const start = `{"custom_id":${JSON.stringify(customId)},"method":"POST","url":${JSON.stringify(url)},"body":`
      parts.push(encoder.encode(start), body, encoder.encode('}\n'))
    }
    const form = new FormData()
    form.set('purpose', 'batch')
    form.set('file', new File([new Uint8Array(Buffer.concat(parts))], nameOf(id), { type: 'application/jsonl' }))
    const file = idIn(await callJson(place, '/files', { method: 'POST', body: form, isLong: true }))
    const order = { input_file_id: file, endpoint: url, completion_window: '24h', metadata: { [nameMember]: id } }
    try {
      return idIn(await callJson(place, '/batches', { method: 'POST', body: JSON.stringify(order) }))
    } catch (error) {
      // Another attempt uploads it again. Where the batch may exist, `find` decides.
      if (isCertain(error)) await removeFile(place, file).catch(() => {})
      throw error
    }
  },
  async find(place, { id, createdAt }) {
    for await (const batch of listed(place)) {
      if (isObject(batch.metadata) && batch.metadata[nameMember] === id) return { upstreamId: idIn(batch) }
      if (typeof batch.created_at === 'number' && batch.created_at * 1000 < createdAt - skewMs) break
    }
    await removeUploads(place, id)
    return 'none'
  },
  async status(place, upstreamId) {
    return statusOf(await callJson(place, `/batches/${upstreamId}`))
  },
  async *results(place, { places }) {
    for (const file of places) {
      for await (const line of linesOf(callBytes(place, `/files/${file}/content`))) yield readResult(line)
    }
  },
  async cancel(place, upstreamId) {
    await callJson(place, `/batches/${upstreamId}/cancel`, { method: 'POST', body: '{}' })
  },
  async remove(place, { places, inputs }) {
    for (const file of [...inputs, ...places]) await removeFile(place, file)
  },
}

/** Whether it is certain that the provider did not do what it was asked. */
function isCertain(error: unknown): boolean {
  return error instanceof BatchApiFault && error.status !== undefined && error.status < 500
}

function nameOf(id: string): string {
  return `${id}.jsonl`
}

/** Newest first. */
async function* listed(place: BatchPlace): AsyncGenerator<JsonAnswer> {
  let after = ''
  for (let page = 0; page < pagesMax; page++) {
    const { data, has_more: hasMore } = await callJson(place, `/batches?limit=${pageSize}${after}`)
    const batches: readonly unknown[] = Array.isArray(data) ? data : []
    for (const batch of batches) if (isObject(batch)) yield batch
    const last = batches.at(-1)
    if (hasMore !== true || !isObject(last)) return
    after = `&after=${idIn(last)}`
  }
  throw listTooLong()
}

/** The file of a process that died before it created the batch. */
async function removeUploads(place: BatchPlace, id: string): Promise<void> {
  const { data } = await callJson(place, `/files?purpose=batch&limit=${pageSize}`)
  for (const file of Array.isArray(data) ? data : []) {
    if (isObject(file) && file.filename === nameOf(id)) await removeFile(place, idIn(file))
  }
}

async function removeFile(place: BatchPlace, id: string): Promise<void> {
  try {
    await callJson(place, `/files/${id}`, { method: 'DELETE' })
  } catch (error) {
    if (!(error instanceof BatchApiFault && error.kind === 'missing')) throw error
  }
}

const ends: ReadonlySet<unknown> = new Set(['completed', 'failed', 'expired', 'cancelled'])

function statusOf(batch: JsonAnswer): JobStatus {
  const { status, errors } = batch
  const files = (...names: readonly string[]) =>
    names.flatMap((name) => (typeof batch[name] === 'string' ? idIn(batch, name) : []))
  const [first] = isObject(errors) && Array.isArray(errors.data) ? errors.data : []
  const why = isObject(first) && typeof first.code === 'string' ? first.code : undefined
  return {
    end: ends.has(status) ? (status as JobStatus['end']) : undefined,
    why,
    places: files('output_file_id', 'error_file_id'),
    inputs: files('input_file_id'),
  }
}

function readResult(line: Uint8Array<ArrayBuffer>): JobResult {
  const body = new Uint8Array(0)
  const read = readJson(line)
  if (read instanceof JsonFault) return { customId: undefined, outcome: 'answered', status: 0, body }
  const customId = read.get('custom_id')?.string
  const response = read.get('response')
  const answer = response?.get('body')
  if (answer?.kind === 'object') {
    const status = Number(response?.get('status_code')?.value() ?? 200)
    return { customId, outcome: 'answered', status, body: line.slice(answer.start, answer.end) }
  }
  const code = read.get('error')?.get('code')?.string
  if (code === 'batch_expired') return { customId, outcome: 'expired', status: 0, body }
  if (code === 'batch_cancelled') return { customId, outcome: 'cancelled', status: 0, body }
  return { customId: undefined, outcome: 'answered', status: 0, body }
}
