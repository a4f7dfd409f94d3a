// `store: true`, `previous_response_id` and references to items. The stored conversation is put before the caller's input,
// and items in place of references, when the body is read, so that everything after that (limits, hold, routing, billing)
// sees the request that the model gets.

import type { SentRequest } from '../dialects/canonical/translation.ts'
import type { Dialect, ResponseStorage } from '../dialects/dialect.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import type { Caller } from '../tenancy/caller.ts'
import { type StoredResponses, storedBytesMax } from '../tenancy/stored-responses.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import type { ResponseMemory } from './exchange.ts'
import { findItems, keepItems, readItemSession } from './kept-items.ts'
import type { KeptReasoning } from './kept-reasoning.ts'
import type { Held } from './stages.ts'

type Body = Uint8Array<ArrayBuffer>

/** Where earlier responses and their items are found; undefined = they are not kept there. */
export interface EarlierResponses {
  readonly stored: StoredResponses | undefined
  readonly kept: KeptReasoning | undefined
  readonly memory?: ResponseMemory | undefined
}

/** A body with the conversation that it continues. */
interface WholeBody {
  readonly body: Body
  readonly previousId: string | undefined
}

interface Asked {
  readonly caller: Caller
  readonly headers: RequestHeaders
  readonly body: Body
  /** The largest body that the gateway takes. */
  readonly bytesMax: number
}

/** Whose response it was makes no difference to the error. */
export async function withEarlier(
  earlier: EarlierResponses,
  storage: ResponseStorage,
  asked: Asked,
): Promise<WholeBody | Failure> {
  const body = await withItems(earlier, storage, asked)
  if (body instanceof Failure) return body
  const { stored, memory } = earlier
  const id = stored || memory ? storage.previousId(body) : undefined
  if (id === undefined) return { body, previousId: undefined }
  const found = memory?.find(id) ?? (await stored?.find(asked.caller.workspaceId, id))
  if (!found) return invalidRequest(unknownResponse(earlier), 'previous_response_id')
  const whole = storage.continueFrom(body, found)
  return whole instanceof Failure ? whole : { body: whole, previousId: id }
}

function unknownResponse({ stored, memory }: EarlierResponses): string {
  const why = [
    ...(memory ? ['It is not the last response on this connection, or a turn that continued it failed.'] : []),
    ...(stored
      ? ['There is no stored response with this id: it was not sent with `store: true`, has expired or was deleted.']
      : []),
  ]
  return `\`previous_response_id\`: ${why.join(' ')} Send the whole conversation in \`input\`.`
}

/** Puts items in place of references to them. */
async function withItems(
  { stored, kept }: EarlierResponses,
  storage: ResponseStorage,
  { caller: { workspaceId }, headers, body, bytesMax }: Asked,
): Promise<Body | Failure> {
  const references = storage.references(body)
  if (!references) return body
  const session = kept && { store: kept, workspaceId, session: readItemSession(headers, references, storage) }
  const found = new Map<string, string[]>()
  let reads = 0
  for (const [id, uses] of Map.groupBy(references.list, (reference) => reference.id)) {
    if (found.has(id)) continue
    const items = session ? await findItems(session, id) : []
    // A host that repeats its ids: each reference means one of its items, in their order.
    if (items.length === 1 || items.length === uses.length) {
      found.set(id, items)
      continue
    }
    reads++
    if (stored && reads > readsMax) {
      return invalidRequest(`\`input\` refers to over ${readsMax} stored items. Send the items themselves.`, 'input')
    }
    const response = await stored?.findByItem(workspaceId, id)
    for (const [each, item] of response ? storage.outputItems(response.response) : []) found.set(each, [item])
    if (!found.has(id)) return invalidRequest(unknownItem({ stored, kept }), uses[0]?.param)
  }
  const items = references.list.map(({ id }) => {
    const left = found.get(id) ?? []
    return (left.length > 1 ? left.shift() : left[0]) ?? ''
  })
  const bytes = items.reduce((sum, item) => sum + item.length, body.length)
  return bytes > bytesMax ? new Failure('PAYLOAD_TOO_LARGE', tooLarge) : references.resolve(items)
}

/** Each is a read of the database. */
const readsMax = 200

const tooLarge = 'With the items that `input` refers to, the body is larger than this gateway takes. Send less.'

function unknownItem({ stored, kept }: EarlierResponses): string {
  const where = [
    kept
      ? 'Items of answers are kept for an hour since their last use, for their own session (`sessions.keep_reasoning`)'
      : 'Items of answers are not kept here (`sessions.keep_reasoning` is off)',
    ...(stored ? ['those of responses that were sent with `store: true` until they expire or are deleted'] : []),
  ]
  return `There is no item with this id. ${where.join(', ')}. Send \`store: false\`, so that your client sends items themselves instead of references.`
}

/** Copies what is stored with the response, because a large body is released while it is answered. */
export function inputToStore(surface: Dialect, sent: SentRequest): string | undefined | Failure {
  if (!surface.storage) return undefined
  const input = surface.storage.inputItems(sent)
  if (input.length > storedBytesMax) {
    const message = `\`store\`: this conversation is too large to be stored (${storedBytesMax / 1024 / 1024} MiB). Send \`store: false\`.`
    return invalidRequest(message, 'store')
  }
  return input
}

interface KeepDependencies {
  readonly storedResponses: StoredResponses
  readonly log: { warn(message: string, fields?: Readonly<Record<string, string>>): void }
}

/** Stores a response, or keeps its items. The request is paid for: the answer goes out even if it cannot be stored. */
export async function keepResponse(
  deps: KeepDependencies,
  { exchange, admitted }: Held,
  lastBytes: Uint8Array,
): Promise<void> {
  const { surface, record } = exchange
  const { caller, storing } = admitted
  const { input, remembered, items } = storing
  const { storage } = surface
  const read = storage?.readResponse(lastBytes)
  if (!storage || !read) return
  if (remembered !== undefined) exchange.connection.memory?.keep(read.id, { input: remembered, ...read })
  const output = storage.outputItems(read.response)
  if (items) await keepItems(items, output)
  if (input === undefined) return
  try {
    if (input.length + read.response.length > 2 * storedBytesMax) throw new Error('it is too large')
    await deps.storedResponses.keep(caller.workspaceId, { ...read, input, itemIds: [...output.keys()] })
  } catch (error) {
    record.notes.push('the response could not be stored')
    deps.log.warn('a response could not be stored', { request_id: record.id, error: String(error) })
  }
}
