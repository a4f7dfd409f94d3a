// The lines of a file of requests, as OpenAI defines them: `{"custom_id", "method", "url", "body"}`. Requests that were sent with
// the call that created a batch are stored in the same form.

import type { BatchError } from '../tenancy/batches.ts'
import { lineFeed } from '../wire/bytes.ts'
import { JsonFault, readJson } from '../wire/json.ts'

/** A line of the file, which may be anything; `line` from 1. */
export interface RawLine {
  readonly line: number
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** Lines that are not blank. `pieces` are cut anywhere. */
export async function* readLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<RawLine> {
  let line = 0
  let waiting: Uint8Array[] = []
  const take = (last: Uint8Array): RawLine => {
    const bytes = new Uint8Array(Buffer.concat([...waiting, last]))
    waiting = []
    return { line: ++line, bytes }
  }
  for await (const piece of pieces) {
    let from = 0
    for (let end = piece.indexOf(lineFeed); end >= 0; end = piece.indexOf(lineFeed, from)) {
      const raw = take(piece.subarray(from, end))
      from = end + 1
      if (!isBlank(raw.bytes)) yield raw
    }
    if (from < piece.length) waiting.push(piece.slice(from))
  }
  const rest = take(new Uint8Array(0))
  if (!isBlank(rest.bytes)) yield rest
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}

/** One request of a batch. */
export interface BatchLine {
  readonly line: number
  readonly customId: string
  /** JSON, as it was sent. */
  readonly body: Uint8Array<ArrayBuffer>
}

export const customIdMax = 512

/** `endpoint`: the only path that the batch takes. */
export function parseLine({ line, bytes }: RawLine, endpoint: string): BatchLine | BatchError {
  const wrong = (code: string, message: string, param: string | null = null): BatchError => ({
    code,
    message,
    line,
    param,
  })
  const request = readJson(bytes)
  if (request instanceof JsonFault || request.kind !== 'object')
    return wrong('invalid_json_line', `Line ${line} is not a JSON object. Each line must be one complete request.`)
  const customId = request.get('custom_id')?.string
  if (customId === undefined || customId === '' || customId.length > customIdMax) {
    const message = `Line ${line} needs a \`custom_id\`: a text of 1 to ${customIdMax} characters.`
    return wrong('missing_required_parameter', message, 'custom_id')
  }
  const method = request.get('method')?.string
  if (method !== 'POST') return wrong('invalid_method', `Line ${line} needs \`"method": "POST"\`.`, 'method')
  const url = request.get('url')?.string
  if (url !== endpoint)
    return wrong('invalid_url', `Line ${line} needs \`"url": "${endpoint}"\`, the endpoint of the batch.`, 'url')
  const body = request.get('body')
  if (body?.kind !== 'object')
    return wrong('missing_required_parameter', `Line ${line} needs a \`body\`: the JSON object of the request.`, 'body')
  return { line, customId, body: bytes.slice(body.start, body.end) }
}
