// Anthropic's API for batches: /v1/messages/batches.

import { createBatch } from '../../batches/create-batch.ts'
import { renderLine } from '../../batches/render-line.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { yieldToEventLoop } from '../../kernel/timers.ts'
import type { Answer } from '../../pipeline/answer.ts'
import { bodyFailure, type ClientRequest, queryOf } from '../../pipeline/client-request.ts'
import type { Batch } from '../../tenancy/batches.ts'
import type { Caller } from '../../tenancy/caller.ts'
import { JsonFault, type JsonNode, readJson } from '../../wire/json.ts'
import { BodyFault, readBody } from '../../wire/read-body.ts'
import { jsonAnswer, refuse, wrongMethod } from '../responses.ts'
import {
  answerCaller,
  type BatchCall,
  type BatchRouteDependencies,
  limitOf,
  linesAnswer,
  noStore,
  unknownBatch,
} from './route.ts'
import { anthropicBatch } from './shapes.ts'

const pathForm = /^\/messages\/batches(?:\/([\w-]{1,64})(\/cancel|\/results)?)?$/

/** `path` is without /v1. undefined = not one of these paths, or there are no batches here. */
export function createAnthropicBatchesRoute(deps: BatchRouteDependencies) {
  return async (call: BatchCall, path: string): Promise<Answer | undefined> => {
    const match = deps.settings.current.batches.enabled ? pathForm.exec(path) : null
    if (!match) return undefined
    const [, id, part] = match
    const { request, surface } = call
    const { method } = request
    const allow = id === undefined ? 'GET, POST' : part === '/cancel' ? 'POST' : part ? 'GET' : 'GET, DELETE'
    if (!allow.split(', ').includes(method)) return refuse(surface, wrongMethod(method, allow))
    const shown = (batch: Batch) => jsonAnswer(anthropicBatch(batch, resultsUrl(deps, request, batch)), noStore)
    return await answerCaller(deps, call, async (caller) => {
      if (id === undefined) {
        if (method === 'GET') return await list(deps, request, caller)
        const batch = await create(deps, request, caller)
        return batch instanceof Failure ? batch : shown(batch)
      }
      const batch = await deps.store.find(caller.workspaceId, id)
      if (batch?.surface !== 'messages') return unknownBatch(id)
      if (part === '/results') return results(deps, batch)
      if (part === '/cancel') return shown(await deps.runner.cancel(batch))
      return method === 'GET' ? shown(batch) : await remove(deps, batch)
    })
  }
}

/** Where this client reaches the gateway: it reads the results there, with its own key. */
function resultsUrl(
  { settings, forwardedProtoOf }: BatchRouteDependencies,
  request: ClientRequest,
  { id }: Batch,
): string {
  const host = request.headers.get('host') ?? ''
  const origin = settings.current.publicUrl ?? `${forwardedProtoOf(request) ?? 'http'}://${host}`
  return `${origin.replace(/\/$/, '')}/v1/messages/batches/${id}/results`
}

const customIdForm = /^[a-zA-Z0-9_-]{1,64}$/
/** A turn of the event loop takes about this many bytes of requests. */
const turnBytes = 256 * 1024

/** Their limit is 256 MB where OpenAI's is 200 MB. */
const anthropicShare = 1.25

async function create(deps: BatchRouteDependencies, request: ClientRequest, caller: Caller): Promise<Batch | Failure> {
  const { fileBytesMax, linesMax, outputDays } = deps.settings.current.batches
  const bytesMax = fileBytesMax * anthropicShare
  const body = await readBody(request, bytesMax)
  if (body instanceof BodyFault) {
    const mebibytes = Math.floor(bytesMax / 2 ** 20)
    return bodyFailure(body, `The batch is larger than this gateway takes (${mebibytes} MiB). Split it into several.`)
  }
  const json = readJson(body)
  const requests = json instanceof JsonFault ? undefined : json.get('requests')?.elements()
  if (!requests || requests.length === 0)
    return invalidRequest('`requests` must be a list of requests: `[{"custom_id": "a", "params": {…}}]`.', 'requests')
  const input = { purpose: 'requests', name: 'requests.jsonl', days: outputDays } as const
  const file = await deps.files.store(caller.workspaceId, input, linesOf(body, requests))
  const terms = { file, endpoint: '/v1/messages', linesMax: 2 * linesMax, outputDays, failsWhole: true }
  const batch = await createBatch(deps, caller, terms)
  if (batch instanceof Failure) await deps.files.drop(file)
  else void deps.runner.wake()
  return batch
}

/** In the form of OpenAI's files, in which all batches are stored. Throws a Failure. */
async function* linesOf(body: Uint8Array, requests: readonly JsonNode[]): AsyncGenerator<Uint8Array> {
  let turn = 0
  for (const [at, one] of requests.entries()) {
    const customId = one.get('custom_id')?.string
    const params = one.get('params')
    if (customId === undefined || !customIdForm.test(customId)) {
      const message = `\`requests[${at}].custom_id\` must have 1 to 64 letters, digits, hyphens and underscores.`
      throw invalidRequest(message, `requests[${at}].custom_id`)
    }
    if (params?.kind !== 'object')
      throw invalidRequest(`\`requests[${at}].params\` must be the body of a message.`, `requests[${at}].params`)
    // A line feed between two members would end the line.
    const sent = Buffer.from(body.buffer, body.byteOffset + params.start, params.end - params.start)
    const flat = sent.includes(0x0a) || sent.includes(0x0d) ? sent.toString().replace(/[\r\n]/g, ' ') : sent
    yield Buffer.concat([
      Buffer.from(`{"custom_id":"${customId}","method":"POST","url":"/v1/messages","body":`),
      Buffer.from(flat),
      Buffer.from('}\n'),
    ])
    turn += params.end - params.start
    if (turn < turnBytes) continue
    await yieldToEventLoop()
    turn = 0
  }
}

async function list(deps: BatchRouteDependencies, request: ClientRequest, caller: Caller): Promise<Answer> {
  const query = queryOf(request.url)
  const limit = limitOf(request, 20, 1000)
  const [after, before] = [query.get('after_id') ?? undefined, query.get('before_id') ?? undefined]
  const found = await deps.store.list(caller.workspaceId, 'messages', { after, before, limit: limit + 1 })
  const page = before === undefined ? found.slice(0, limit) : found.slice(-limit)
  const data = page.map((batch) => anthropicBatch(batch, resultsUrl(deps, request, batch)))
  const ids = { first_id: page[0]?.id ?? null, last_id: page.at(-1)?.id ?? null }
  return jsonAnswer({ data, has_more: found.length > limit, ...ids }, noStore)
}

function results(deps: BatchRouteDependencies, batch: Batch): Answer | Failure {
  if (batch.state !== 'ended') return invalidRequest('The batch has not ended, so it has no results yet.')
  return linesAnswer(deps, 'application/x-jsonl', renderedLines(deps, batch))
}

async function* renderedLines({ store }: BatchRouteDependencies, batch: Batch): AsyncGenerator<string> {
  for await (const row of store.results(batch.id)) yield renderLine(batch, row)
}

async function remove({ store }: BatchRouteDependencies, batch: Batch): Promise<Answer | Failure> {
  if (batch.state !== 'ended')
    return invalidRequest('The batch has not ended. Cancel it first, and delete it once it has ended.')
  await store.remove(batch.id)
  return jsonAnswer({ id: batch.id, type: 'message_batch_deleted' }, noStore)
}
