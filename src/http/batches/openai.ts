// OpenAI's API for batches: /v1/files with the purpose `batch`, and /v1/batches.

import { z } from 'zod'
import { createBatch } from '../../batches/create-batch.ts'
import { batchKinds } from '../../batches/kinds.ts'
import { renderLine } from '../../batches/render-line.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { Answer } from '../../pipeline/answer.ts'
import { bodyFailure, type ClientRequest, queryOf } from '../../pipeline/client-request.ts'
import { type BatchFile, dayMs } from '../../tenancy/batch-files.ts'
import { type Batch, statusOf } from '../../tenancy/batches.ts'
import type { Caller } from '../../tenancy/caller.ts'
import { BodyFault, readBody } from '../../wire/read-body.ts'
import { jsonAnswer, refuse, wrongMethod } from '../responses.ts'
import { fieldText, readForm } from './multipart.ts'
import {
  answerCaller,
  type BatchCall,
  type BatchRouteDependencies,
  limitOf,
  linesAnswer,
  noStore,
  unknownBatch,
} from './route.ts'
import { openaiBatch, openaiFile } from './shapes.ts'

const pathForm = /^\/(files|batches)(?:\/([\w-]{1,64})(\/content|\/cancel)?)?$/

/** By what follows the id. */
const methods = {
  files: { list: 'GET, POST', item: 'GET, DELETE', '/content': 'GET', '/cancel': '' },
  batches: { list: 'GET, POST', item: 'GET', '/content': '', '/cancel': 'POST' },
} as const

/** `path` is without /v1. undefined = not one of these paths, or there are no batches here. */
export function createOpenaiBatchesRoute(deps: BatchRouteDependencies) {
  return async (call: BatchCall, path: string): Promise<Answer | undefined> => {
    const [, what, id, part] = (deps.settings.current.batches.enabled && pathForm.exec(path)) || []
    if (what !== 'files' && what !== 'batches') return undefined
    const place = (part ?? (id === undefined ? 'list' : 'item')) as keyof (typeof methods)['files']
    const allow = methods[what][place]
    if (allow === '') return undefined
    const { request, surface } = call
    const { method } = request
    if (!allow.split(', ').includes(method)) return refuse(surface, wrongMethod(method, allow))
    return await answerCaller(deps, call, async (caller) => {
      if (id === undefined && method === 'POST')
        return what === 'files' ? await upload(deps, request, caller) : await create(deps, request, caller)
      if (id === undefined)
        return what === 'files' ? await listFiles(deps, request, caller) : await list(deps, request, caller)
      if (what === 'files') return await answerFile(deps, caller, { id, part, method })
      const batch = await findBatch(deps, caller, id)
      if (batch instanceof Failure) return batch
      return part === '/cancel' ? await cancel(deps, batch) : jsonAnswer(openaiBatch(batch), noStore)
    })
  }
}

// ── Files ──

/** The form around the file. */
const formBytes = 64 * 1024
const expirySeconds = { min: 3600, max: 30 * 86_400 }

async function upload(
  { files, settings }: BatchRouteDependencies,
  request: ClientRequest,
  { workspaceId }: Caller,
): Promise<Answer | Failure> {
  const { fileBytesMax, outputDays } = settings.current.batches
  const fields = new Map<string, string>()
  let file: BatchFile | undefined
  try {
    for await (const part of readForm(request, fileBytesMax + formBytes)) {
      if (part.name !== 'file' || part.fileName === undefined) fields.set(part.name, await fieldText(part))
      else if (file) throw invalidRequest('The form has more than one `file`.', 'file')
      else {
        const days = expiryDays(fields) ?? outputDays
        file = await files.store(workspaceId, { purpose: 'batch', name: part.fileName, days }, part.content)
      }
    }
    if (fields.get('purpose') !== 'batch')
      throw invalidRequest('Files are stored here for batches only: send `purpose=batch`.', 'purpose')
    if (!file) throw invalidRequest('The form needs a `file`.', 'file')
    if (file.bytes > fileBytesMax)
      throw new Failure('PAYLOAD_TOO_LARGE', `The file has more than ${fileBytesMax} bytes.`)
  } catch (error) {
    if (file) await files.drop(file)
    throw error
  }
  return jsonAnswer(openaiFile(file), noStore)
}

/** `expires_after`, if it was sent before the file. */
function expiryDays(fields: ReadonlyMap<string, string>): number | undefined {
  const text = fields.get('expires_after[seconds]')
  if (text === undefined) return undefined
  const seconds = Number(text)
  if (!Number.isInteger(seconds) || seconds < expirySeconds.min || seconds > expirySeconds.max) {
    const message = `\`expires_after[seconds]\` must be a whole number from ${expirySeconds.min} to ${expirySeconds.max}.`
    throw invalidRequest(message, 'expires_after')
  }
  return seconds / 86_400
}

async function listFiles(
  { files }: BatchRouteDependencies,
  request: ClientRequest,
  { workspaceId }: Caller,
): Promise<Answer> {
  const query = queryOf(request.url)
  const limit = limitOf(request, 10_000, 10_000)
  const found = await files.list(workspaceId, {
    after: query.get('after') ?? undefined,
    purpose: query.get('purpose') ?? undefined,
    oldestFirst: query.get('order') === 'asc',
    limit: limit + 1,
  })
  return listAnswer(
    found.map((file) => ({ id: file.id, shown: openaiFile(file) })),
    limit,
  )
}

/** `items`: one more than the page has, if there is another page. */
function listAnswer(items: readonly { readonly id: string; readonly shown: object }[], limit: number): Answer {
  const page = items.slice(0, limit)
  const ids = { first_id: page[0]?.id ?? null, last_id: page.at(-1)?.id ?? null }
  return jsonAnswer(
    { object: 'list', data: page.map(({ shown }) => shown), ...ids, has_more: items.length > limit },
    noStore,
  )
}

interface FileCall {
  readonly id: string
  readonly part: string | undefined
  readonly method: string
}

async function answerFile(
  deps: BatchRouteDependencies,
  { workspaceId }: Caller,
  { id, part, method }: FileCall,
): Promise<Answer | Failure> {
  const { files, store } = deps
  const file = await files.find(workspaceId, id)
  if (!file || file.purpose === 'requests') return unknownFile(id)
  if (part === '/content') return linesAnswer(deps, 'application/octet-stream', contentOf(deps, file))
  if (method === 'GET') return jsonAnswer(openaiFile(file), noStore)
  if (await store.isInUse(file.id)) {
    const message = `File \`${id}\` is read by a batch that has not ended. Cancel the batch first, or wait for its end.`
    return invalidRequest(message)
  }
  const batch = file.batchId === undefined ? undefined : await store.find(workspaceId, file.batchId)
  if (batch) await store.removeResults(batch.id, file.hasAnswers === true)
  await files.drop(file)
  return jsonAnswer({ id, object: 'file', deleted: true }, noStore)
}

function unknownFile(id: string): Failure {
  return new Failure('NOT_FOUND', `There is no file \`${id.slice(0, 100)}\` here.`)
}

async function* contentOf(
  { files, store }: BatchRouteDependencies,
  file: BatchFile,
): AsyncGenerator<string | Uint8Array> {
  const { batchId, workspaceId, hasAnswers } = file
  if (batchId === undefined) return yield* files.read(file)
  const batch = await store.find(workspaceId, batchId)
  if (!batch) return
  for await (const row of store.results(batch.id, hasAnswers)) yield renderLine(batch, row)
}

// ── Batches ──

const endpoints = [...batchKinds.values()].filter((kind) => kind.surfaceOfBatch === 'chat').map(({ url }) => url)

const newBatch = z.object({
  input_file_id: z.string(),
  endpoint: z.enum(endpoints as [string, ...string[]]),
  completion_window: z.literal('24h'),
  metadata: z.record(z.string().max(64), z.string().max(512)).nullish(),
  output_expires_after: z
    .object({ anchor: z.literal('created_at'), seconds: z.int().min(expirySeconds.min).max(expirySeconds.max) })
    .nullish(),
})

const bodyBytesMax = 256 * 1024

/** The fields of OpenAI's SDK; others are ignored, as OpenAI adds some now and then. */
async function readNewBatch(request: ClientRequest): Promise<z.infer<typeof newBatch>> {
  const body = await readBody(request, bodyBytesMax)
  if (body instanceof BodyFault) throw bodyFailure(body, `The body must have at most ${bodyBytesMax} bytes.`)
  let json: unknown
  try {
    json = JSON.parse(Buffer.from(body).toString())
  } catch {
    throw invalidRequest('The body must be a JSON object.')
  }
  const read = newBatch.safeParse(json)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const param = issue?.path.join('.') || undefined
  const expected: Record<string, string> = {
    endpoint: `one of ${endpoints.join(', ')}`,
    completion_window: '`24h`',
    input_file_id: 'the id of an uploaded file',
    metadata: 'an object of texts',
  }
  throw invalidRequest(
    param === undefined ? 'The body must be a JSON object.' : `\`${param}\` must be ${expected[param] ?? 'valid'}.`,
    param,
  )
}

async function create(deps: BatchRouteDependencies, request: ClientRequest, caller: Caller): Promise<Answer | Failure> {
  const asked = await readNewBatch(request)
  const file = await deps.files.find(caller.workspaceId, asked.input_file_id)
  if (file?.purpose !== 'batch') {
    const message = `There is no file \`${asked.input_file_id.slice(0, 100)}\` here. Upload one first: POST /v1/files with purpose=batch.`
    return new Failure('NOT_FOUND', message, { param: 'input_file_id' })
  }
  const { linesMax, outputDays } = deps.settings.current.batches
  const seconds = asked.output_expires_after?.seconds
  const days = seconds === undefined ? outputDays : Math.min(30, Math.max(1, Math.ceil((seconds * 1000) / dayMs)))
  const metadata = asked.metadata ?? undefined
  const batch = await createBatch(deps, caller, {
    file,
    endpoint: asked.endpoint,
    metadata,
    linesMax,
    outputDays: days,
  })
  if (batch instanceof Failure) return batch
  void deps.runner.wake()
  return jsonAnswer(openaiBatch(batch), noStore)
}

async function list(
  { store }: BatchRouteDependencies,
  request: ClientRequest,
  { workspaceId }: Caller,
): Promise<Answer> {
  const limit = limitOf(request, 20, 100)
  const after = queryOf(request.url).get('after') ?? undefined
  const found = await store.list(workspaceId, 'chat', { after, limit: limit + 1 })
  return listAnswer(
    found.map((batch) => ({ id: batch.id, shown: openaiBatch(batch) })),
    limit,
  )
}

async function findBatch(
  { store }: BatchRouteDependencies,
  { workspaceId }: Caller,
  id: string,
): Promise<Batch | Failure> {
  const batch = await store.find(workspaceId, id)
  return batch?.surface === 'chat' ? batch : unknownBatch(id)
}

async function cancel(deps: BatchRouteDependencies, batch: Batch): Promise<Answer | Failure> {
  if (batch.state === 'ended')
    return invalidRequest(`The batch has ended (${statusOf(batch)}) and cannot be cancelled.`)
  return jsonAnswer(openaiBatch(await deps.runner.cancel(batch)), noStore)
}
