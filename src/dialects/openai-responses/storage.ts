// Stored responses in the form of this API: continuing one, referring to items of one, and reading one from a reply.

import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import { hasBytes, utf8Text } from '../../wire/bytes.ts'
import { JsonEdits, JsonFault, type JsonNode, readJson } from '../../wire/json.ts'
import { readSseRecord } from '../../wire/sse.ts'
import { textIn } from '../byte-lane/edits.ts'
import { isRecord, listOf, parseJson, parseRecord, recordOf, textOf } from '../canonical/json.ts'
import type { SentRequest } from '../canonical/translation.ts'
import type { ResponseStorage, StoredConversation } from '../dialect.ts'
import { openaiInstructing } from '../request/fields.ts'

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
  opening({ members }) {
    const input = members.get('input')
    if (input?.kind !== 'array') return input?.string ?? ''
    let first = input.at(0)
    for (let i = 1; first && openaiInstructing.has(textIn(first, 'role')); i++) first = input.at(i)
    const content = first?.get('content')
    return (
      content?.string ??
      content
        ?.elements()
        ?.map((part) => textIn(part, 'text'))
        .join('') ??
      first?.text ??
      ''
    )
  },
  references(body) {
    const members = hasBytes(body, referenceWord) ? rootOf(body) : undefined
    const found = (members?.get('input')?.elements() ?? []).flatMap((item, i) => {
      const id = textIn(item, 'type') === 'item_reference' ? item.get('id')?.string : undefined
      return id === undefined ? [] : [{ item, id, param: `input[${i}].id` }]
    })
    if (!members || found.length === 0) return undefined
    const resolve = (items: readonly string[]) => {
      const edits = new JsonEdits(body)
      for (const [i, { item }] of found.entries()) {
        const text = items[i]
        if (text !== undefined && isReadable(parseJson(text))) edits.set(item, text)
        else edits.remove(item)
      }
      return edits.apply()
    }
    return { members, list: found, resolve }
  },
  outputItems(response) {
    const items = listOf(recordOf(parseJson(response)).output).map((item) => [textOf(recordOf(item).id), item] as const)
    return new Map(items.filter(([id]) => idForm.test(id)).map(([id, item]) => [id, JSON.stringify(item)]))
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
    return idForm.test(id) ? { id, response: JSON.stringify(response) } : undefined
  },
}

/** undefined for a body that its envelope will refuse. */
function rootOf(body: Uint8Array): JsonNode | undefined {
  const root = readJson(body)
  return root instanceof JsonFault ? undefined : root
}

function continueFrom(
  body: Uint8Array<ArrayBuffer>,
  { input, response }: StoredConversation,
): Uint8Array<ArrayBuffer> | Failure {
  const root = rootOf(body)
  if (!root) return body
  const edits = new JsonEdits(body)
  const previous = root.get(previousName)
  if (previous) edits.remove(previous)
  const own = root.get('input')
  if (own) {
    const earlier = [...listOf(parseJson(input)), ...listOf(recordOf(parseJson(response)).output)].filter(isReadable)
    const unasked = resultWithoutCall(earlier, own)
    if (unasked) return unasked
    const items = [...earlier.map((item) => JSON.stringify(item)), itemsOf(own)].filter((text) => text !== '')
    edits.set(own, `[${items.join(',')}]`)
  }
  return edits.apply()
}

const results = new Set(['function_call_output', 'custom_tool_call_output'])

/** A compaction may have the call. */
function resultWithoutCall(earlier: readonly unknown[], own: JsonNode): Failure | undefined {
  const items = own.elements() ?? []
  if (earlier.some((item) => recordOf(item).type === 'compaction')) return undefined
  const ids = new Set(earlier.map((item) => textOf(recordOf(item).call_id)))
  for (const [i, item] of items.entries()) {
    const id = textIn(item, 'call_id') ?? ''
    if (results.has(textIn(item, 'type') ?? '') && !ids.has(id)) {
      const param = `input[${i}].call_id`
      return invalidRequest(`\`${param}\`: the conversation has no call ${id.slice(0, 100)}.`, param)
    }
    ids.add(id)
  }
  return undefined
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
