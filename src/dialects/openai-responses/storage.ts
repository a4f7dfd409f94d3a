// Stored responses in the form of this API: continuing one, and reading one from a reply.

import { hasBytes, utf8Text } from '../../wire/bytes.ts'
import { JsonEdits, JsonFault, type JsonNode, readJson } from '../../wire/json.ts'
import { readSseRecord } from '../../wire/sse.ts'
import { textIn } from '../byte-lane/edits.ts'
import { isRecord, listOf, parseJson, parseRecord, recordOf, textOf } from '../canonical/json.ts'
import type { SentRequest } from '../canonical/translation.ts'
import type { ResponseStorage, StoredConversation } from '../dialect.ts'

const previousName = 'previous_response_id'
const previousWord = Buffer.from(previousName)
const referenceWord = Buffer.from('item_reference')
/** Part of a path, and of a row. */
const idForm = /^[\w-]{1,128}$/

export const storage: ResponseStorage = {
  previousId(body) {
    return hasBytes(body, previousWord) ? rootOf(body)?.get(previousName)?.string : undefined
  },
  continueFrom,
  referredItems(body) {
    return inputItems(body).flatMap((item, i) => {
      const id = referredId(item)
      return id === undefined ? [] : [{ id, param: `input[${i}].id` }]
    })
  },
  resolveItems(body, responses) {
    const edits = new JsonEdits(body)
    for (const item of inputItems(body)) {
      const id = referredId(item)
      if (id === undefined) continue
      const found = itemOf(responses.get(id) ?? '', id)
      if (isReadable(found)) edits.set(item, JSON.stringify(found))
      else edits.remove(item)
    }
    return edits.apply()
  },
  inputItems({ members }: SentRequest) {
    const input = members.get('input')
    return input ? `[${itemsOf(input)}]` : '[]'
  },
  readResponse(bytes) {
    const text = utf8Text(bytes, 0, bytes.length)
    const response = text.startsWith('{')
      ? parseRecord(text)
      : recordOf(parseRecord(readSseRecord(bytes).data ?? '')).response
    if (!isRecord(response) || (response.status !== 'completed' && response.status !== 'incomplete')) return undefined
    const id = textOf(response.id)
    const itemIds = listOf(response.output).map((item) => textOf(recordOf(item).id))
    return idForm.test(id)
      ? { id, response: JSON.stringify(response), itemIds: itemIds.filter((each) => idForm.test(each)) }
      : undefined
  },
}

/** undefined for a body that its envelope will refuse. */
function rootOf(body: Uint8Array): JsonNode | undefined {
  const root = readJson(body)
  return root instanceof JsonFault ? undefined : root
}

/** The elements of an input, if some may refer to others. */
function inputItems(body: Uint8Array): readonly JsonNode[] {
  return (hasBytes(body, referenceWord) && rootOf(body)?.get('input')?.elements()) || []
}

/** The id that an element refers to; undefined = it is an item itself. */
function referredId(item: JsonNode): string | undefined {
  return textIn(item, 'type') === 'item_reference' ? textIn(item, 'id') : undefined
}

function itemOf(response: string, id: string): unknown {
  return listOf(recordOf(parseJson(response)).output).find((item) => recordOf(item).id === id)
}

function continueFrom(body: Uint8Array<ArrayBuffer>, { input, response }: StoredConversation): Uint8Array<ArrayBuffer> {
  const root = rootOf(body)
  if (!root) return body
  const edits = new JsonEdits(body)
  const previous = root.get(previousName)
  if (previous) edits.remove(previous)
  const own = root.get('input')
  if (own) {
    const earlier = [...listOf(parseJson(input)), ...listOf(recordOf(parseJson(response)).output)].filter(isReadable)
    const items = [...earlier.map((item) => JSON.stringify(item)), itemsOf(own)].filter((text) => text !== '')
    edits.set(own, `[${items.join(',')}]`)
  }
  return edits.apply()
}

/** The items of an input, without the brackets. Other kinds of input are left for the envelope to refuse. */
function itemsOf(input: JsonNode): string {
  if (input.kind === 'array') return input.text.slice(1, -1).trim()
  if (input.kind !== 'string') return input.text
  const text = input.string
  return text ? JSON.stringify({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }) : ''
}

/** Reasoning that did not come encrypted is only known by its id, at a provider that has not stored it. */
function isReadable(item: unknown): boolean {
  const { type, encrypted_content: content } = recordOf(item)
  return type !== 'reasoning' || typeof content === 'string'
}
