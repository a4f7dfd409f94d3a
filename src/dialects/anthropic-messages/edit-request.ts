// The members of a Messages body that change on the way to a provider of the same dialect: only the model's name.

import { spliceBytes } from '../../wire/json-members.ts'
import type { Envelope, RequestEdits } from '../dialect.ts'

export function editRequest({ body, members }: Envelope, edits: RequestEdits): Uint8Array<ArrayBuffer> {
  const model = members.find('model')
  if (!model) return body
  const bytes = new TextEncoder().encode(JSON.stringify(edits.upstreamModel))
  return spliceBytes(body, [{ start: model.valueStart, end: model.valueEnd, bytes }])
}
