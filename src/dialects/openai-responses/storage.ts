// Stored responses in the form of this API: continuing one, and reading one from a reply.

import { hasBytes, utf8Text } from '../../wire/bytes.ts'
import { JsonFault, type JsonMember, memberKind, memberText, readJsonMembers, spliceBytes } from '../../wire/json.ts'
import { readSseRecord } from '../../wire/sse.ts'
import { byStart, byteEdit, elementsOf, objectAt, removeMembers, removeSpans, textAt } from '../byte-lane/edits.ts'
import { isRecord, listOf, parseJson, parseRecord, recordOf, textOf } from '../canonical/json.ts'
import type { Envelope } from '../canonical/translation.ts'
import type { ResponseStorage, StoredConversation } from '../dialect.ts'

const previousName = 'previous_response_id'
const previousWord = Buffer.from(previousName)
const referenceWord = Buffer.from('item_reference')
/** Part of a path, and of a row. */
const idForm = /^[\w-]{1,128}$/

export const storage: ResponseStorage = {
  previousId(body) {
    const members = hasBytes(body, previousWord) ? readJsonMembers(body) : undefined
    if (!members || members instanceof JsonFault) return undefined
    const member = members.find(previousName)
    return (member && memberText(body, member)) ?? undefined
  },
  continueFrom,
  referredItems(body) {
    return references(body).flatMap(({ id }, i) => (id === undefined ? [] : [{ id, param: `input[${i}].id` }]))
  },
  resolveItems(body, responses) {
    const all = references(body)
    const items = all.map(({ id }) => (id === undefined ? undefined : itemOf(responses.get(id) ?? '', id)))
    const isRemoved = (i: number) => all[i]?.id !== undefined && !isReadable(items[i])
    const changes = all.flatMap(({ id, span }, i) =>
      id === undefined || isRemoved(i) ? [] : [byteEdit(span.start, span.end, JSON.stringify(items[i]))],
    )
    const spans = all.map(({ span }) => span)
    return spliceBytes(body, [...changes, ...removeSpans(spans, isRemoved)].sort(byStart))
  },
  inputItems({ body, members }: Envelope) {
    const input = members.find('input')
    return input ? `[${itemsOf(body, input)}]` : '[]'
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

/** Every element of the input, with the id that it refers to; undefined = it is an item itself. */
function references(body: Uint8Array<ArrayBuffer>) {
  const members = hasBytes(body, referenceWord) ? readJsonMembers(body) : undefined
  if (!members || members instanceof JsonFault) return []
  return elementsOf(body, members.find('input')).map((span) => {
    const item = objectAt(body, span)
    const isReference = textAt(body, item?.find('type')) === 'item_reference'
    return { id: isReference ? textAt(body, item?.find('id')) : undefined, span }
  })
}

function itemOf(response: string, id: string): unknown {
  return listOf(recordOf(parseJson(response)).output).find((item) => recordOf(item).id === id)
}

function continueFrom(body: Uint8Array<ArrayBuffer>, { input, response }: StoredConversation): Uint8Array<ArrayBuffer> {
  const members = readJsonMembers(body)
  if (members instanceof JsonFault) return body
  const changes = removeMembers(members, [previousName])
  const own = members.find('input')
  if (own) {
    const earlier = [...listOf(parseJson(input)), ...listOf(recordOf(parseJson(response)).output)].filter(isReadable)
    const items = [...earlier.map((item) => JSON.stringify(item)), itemsOf(body, own)].filter((text) => text !== '')
    changes.push(byteEdit(own.valueStart, own.valueEnd, `[${items.join(',')}]`))
  }
  return spliceBytes(body, changes.sort(byStart))
}

/** The items of an input, without the brackets. Other kinds of input are left for the envelope to refuse. */
function itemsOf(body: Uint8Array, input: JsonMember): string {
  const written = utf8Text(body, input.valueStart, input.valueEnd)
  if (memberKind(body, input) === 'array') return written.slice(1, -1).trim()
  const text = memberText(body, input)
  if (text === '') return ''
  const content = [{ type: 'input_text', text }]
  return text === undefined ? written : JSON.stringify({ type: 'message', role: 'user', content })
}

/** Reasoning that did not come encrypted is only known by its id, at a provider that has not stored it. */
function isReadable(item: unknown): boolean {
  const { type, encrypted_content: content } = recordOf(item)
  return type !== 'reasoning' || typeof content === 'string'
}
