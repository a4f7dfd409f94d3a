// `store: true` and `previous_response_id`. The stored conversation is put before the caller's input when the body is read,
// so that everything after that (limits, hold, routing, billing) sees the request that the model gets.

import type { SentRequest } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import type { Caller } from '../tenancy/caller.ts'
import { type StoredResponses, storedBytesMax } from '../tenancy/stored-responses.ts'
import type { Held } from './stages.ts'

type Body = Uint8Array<ArrayBuffer>

/** A body with the conversation that it continues. */
interface WholeBody {
  readonly body: Body
  readonly previousId: string | undefined
}

/** Whose response it was makes no difference to the error. */
export async function withPrevious(
  stored: StoredResponses,
  surface: Dialect,
  caller: Caller,
  body: Body,
): Promise<WholeBody | Failure> {
  const resolved = await withItems(stored, surface, caller, body)
  if (resolved instanceof Failure) return resolved
  const id = surface.storage?.previousId(resolved)
  if (id === undefined || !surface.storage) return { body: resolved, previousId: undefined }
  const found = await stored.find(caller.workspaceId, id)
  if (!found) {
    const message =
      '`previous_response_id`: there is no stored response with this id. It was not sent with `store: true`, has expired or was deleted. Send the whole conversation in `input`.'
    return invalidRequest(message, 'previous_response_id')
  }
  return { body: surface.storage.continueFrom(resolved, found), previousId: id }
}

/** Puts the items of stored responses in place of references to them. */
async function withItems(
  stored: StoredResponses,
  surface: Dialect,
  caller: Caller,
  body: Body,
): Promise<Body | Failure> {
  const referred = surface.storage?.referredItems(body) ?? []
  if (!surface.storage || referred.length === 0) return body
  if (referred.length > referencesMax) {
    return invalidRequest(`\`input\` has ${referred.length} references; at most ${referencesMax}.`, 'input')
  }
  const responses = new Map<string, string>()
  for (const { id, param } of referred) {
    const found = responses.has(id) ? undefined : await stored.findByItem(caller.workspaceId, id)
    if (found) responses.set(id, found.response)
    if (!responses.has(id)) return invalidRequest(unknownItem, param)
  }
  return surface.storage.resolveItems(body, responses)
}

/** Each is a read of the database. */
const referencesMax = 200
const unknownItem =
  'There is no stored item with this id. Its response was not sent with `store: true`, has expired or was deleted. Send the item itself.'

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

/** The request is paid for: the answer goes out even if it cannot be stored. */
export async function keepResponse(
  deps: KeepDependencies,
  { exchange, admitted }: Held,
  lastBytes: Uint8Array,
): Promise<void> {
  const { surface, record } = exchange
  const { caller, storing } = admitted
  const { input } = storing
  const read = surface.storage?.readResponse(lastBytes)
  if (input === undefined || !read) return
  try {
    if (input.length + read.response.length > 2 * storedBytesMax) throw new Error('it is too large')
    await deps.storedResponses.keep(caller.workspaceId, { ...read, input })
  } catch (error) {
    record.notes.push('the response could not be stored')
    deps.log.warn('a response could not be stored', { request_id: record.id, error: String(error) })
  }
}
