// The grammar of Responses that official clients and Codex rely on, as rules with names: an item is announced before its
// deltas, its parts follow one another, its end repeats it whole, numbers rise by one, and one event is the last. A stream
// that ends with `response.failed` is well-formed; it is only not complete.

import type { SseEvent } from '../../../src/wire/sse.ts'
import { StreamGrammar } from './stream-grammar.ts'
import {
  Findings,
  isCount,
  isMembers,
  isWellFormed,
  type Level,
  listOf,
  type Members,
  membersOf,
  parseJson,
  type Violation,
} from './violation.ts'

const idPrefixes: Readonly<Record<string, string>> = {
  message: 'msg_',
  reasoning: 'rs_',
  function_call: 'fc_',
  custom_tool_call: 'ctc_',
}

const lastEvents: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed'])

/** The member of an item's end that holds the text of these deltas. */
const deltaTypes: Readonly<Record<string, string>> = {
  'response.output_text.delta': 'message',
  'response.refusal.delta': 'message',
  'response.reasoning_summary_text.delta': 'reasoning',
  'response.reasoning_text.delta': 'reasoning',
  'response.function_call_arguments.delta': 'function_call',
  'response.custom_tool_call_input.delta': 'custom_tool_call',
}

export function checkResponsesStream(events: readonly SseEvent[], level: Level = 'own'): Violation[] {
  return new ResponsesStreamGrammar(level).check(events)
}

export function checkResponsesReply(reply: unknown, level: Level = 'own'): Violation[] {
  const findings = new Findings(level)
  const response = membersOf(reply)
  checkResponse(findings, response)
  for (const item of listOf(response.output).map(membersOf)) checkItem(findings, item)
  findings.expect(['completed', 'incomplete'].includes(String(response.status)), 'status', `${response.status}`)
  checkUsage(findings, response.usage)
  findings.expect(isWellFormed(reply), 'unicode', 'half a character')
  return findings.list
}

function checkResponse(findings: Findings, response: Members): void {
  findings.expect(String(response.id).startsWith('resp_'), 'id-prefix', `the response ${response.id}`)
  findings.expect(response.object === 'response', 'object', 'object is response')
  findings.expect(typeof response.model === 'string', 'model', 'model is a string')
  findings.expect(isCount(response.created_at), 'created', 'created_at is a number')
  for (const name of ['error', 'incomplete_details', 'instructions', 'metadata', 'parallel_tool_calls']) {
    findings.expect(name in response, 'members', `${name} is there`)
  }
  for (const name of ['temperature', 'tool_choice', 'tools', 'top_p', 'output']) {
    findings.expect(name in response, 'members', `${name} is there`)
  }
  findings.expectOfUs(response.store === false, 'store', 'nothing is stored')
}

function checkItem(findings: Findings, item: Members): void {
  const prefix = idPrefixes[String(item.type)]
  findings.expectOfUs(prefix !== undefined, 'known-item', `the item ${item.type}`)
  if (prefix) findings.expect(String(item.id).startsWith(prefix), 'id-prefix', `the item ${item.id}`)
  switch (item.type) {
    case 'message':
      findings.expect(item.role === 'assistant' && item.status === 'completed', 'message', 'role and status')
      findings.expectOfUs(listOf(item.content).length > 0, 'content', 'at least one part')
      return
    case 'reasoning':
      return findings.expect(Array.isArray(item.summary), 'summary', 'summary is a list')
    case 'function_call':
      findings.expect(isMembers(parseJson(String(item.arguments))), 'arguments', `${item.arguments} is an object`)
      return findings.expect(Boolean(item.call_id) && Boolean(item.name), 'call', 'call_id and name')
    case 'custom_tool_call':
      findings.expect(typeof item.input === 'string', 'input', 'input is a string')
      return findings.expect(Boolean(item.call_id) && Boolean(item.name), 'call', 'call_id and name')
  }
}

function checkUsage(findings: Findings, value: unknown): void {
  const usage = membersOf(value)
  for (const name of ['input_tokens', 'output_tokens', 'total_tokens']) {
    findings.expect(isCount(usage[name]), 'usage', `${name} is a count`)
  }
  findings.expect(isCount(membersOf(usage.input_tokens_details).cached_tokens), 'usage', 'cached_tokens is a count')
  const { reasoning_tokens: reasoning = 0 } = membersOf(usage.output_tokens_details)
  findings.expect(isCount(reasoning), 'usage', 'reasoning_tokens is a count')
  const sum = Number(usage.input_tokens) + Number(usage.output_tokens)
  findings.expect(usage.total_tokens === sum, 'usage', 'the total is the sum')
}

interface OpenItem {
  readonly type: string
  readonly id: unknown
  readonly index: number
  /** Text by part. */
  readonly texts: Map<string, string>
  openPart: string | undefined
}

class ResponsesStreamGrammar extends StreamGrammar {
  #sequence = 0
  #isCreated = false
  #isDone = false
  #last: string | undefined
  #open: OpenItem | undefined
  readonly #done: Members[] = []

  protected record({ event, data }: SseEvent): void {
    // The marker of Open Responses, which OpenAI's servers do not send.
    if (data === '[DONE]' && event === '') {
      this.expect(this.#last !== undefined && !this.#isDone, 'after-end', '[DONE] before the last event, or again')
      this.#isDone = true
      return
    }
    this.expect(!this.#isDone, 'after-end', `${event} after [DONE]`)
    const record = parseJson(data)
    if (!isMembers(record)) return this.expect(false, 'data-json', 'data is no object')
    this.expect(record.type === event, 'event-name', `event ${event} with type ${record.type}`)
    this.expect(this.#last === undefined, 'after-end', `${event} after ${this.#last}`)
    this.expect(isWellFormed(record), 'unicode', 'half a character')
    this.expect(
      record.sequence_number === this.#sequence,
      'sequence',
      `${record.sequence_number} not ${this.#sequence}`,
    )
    this.#sequence += 1
    if (event === 'response.created') return this.#create(membersOf(record.response))
    if (lastEvents.has(event)) return this.#end(event, membersOf(record.response))
    this.expect(this.#isCreated, 'created-first', `${event} before response.created`)
    this.#read(event, record)
  }

  #create(response: Members): void {
    this.expect(!this.#isCreated, 'created-first', 'created twice')
    this.#isCreated = true
    checkResponse(this.findings, response)
    this.expect(listOf(response.output).length === 0, 'created-first', 'output before it begins')
  }

  #read(event: string, record: Members): void {
    switch (event) {
      case 'response.in_progress':
      case 'keepalive':
        return
      case 'response.output_item.added':
        return this.#add(record)
      case 'response.output_item.done':
        return this.#finish(record)
      case 'response.content_part.added':
      case 'response.reasoning_summary_part.added':
        return this.#startPart(record)
      case 'response.content_part.done':
      case 'response.reasoning_summary_part.done':
        return this.#endPart(record)
    }
    const type = deltaTypes[event]
    if (type !== undefined) return this.#delta(type, record)
    if (event.endsWith('.done')) return this.#checkText(record)
    this.expectOfUs(false, 'known-event', `unknown event ${event}`)
  }

  #add(record: Members): void {
    const item = membersOf(record.item)
    this.expectOfUs(this.#open === undefined, 'one-open', 'an item in an item')
    this.expect(record.output_index === this.#done.length, 'output-index', `${record.output_index}`)
    const index = Number(record.output_index)
    this.#open = { type: String(item.type), id: item.id, index, texts: new Map(), openPart: undefined }
  }

  #place(record: Members, rule: string): OpenItem | undefined {
    const open = this.#open
    this.expect(open !== undefined, 'added-first', `${record.type} before its item`)
    this.expect(record.item_id === open?.id && record.output_index === open?.index, rule, 'names another item')
    return open
  }

  #startPart(record: Members): void {
    const open = this.#place(record, 'part-item')
    if (!open) return
    this.expect(open.openPart === undefined, 'one-open', 'a part in a part')
    open.openPart = partOf(record)
    this.expect(!open.texts.has(open.openPart), 'part-index', `${open.openPart} twice`)
    open.texts.set(open.openPart, '')
  }

  #delta(type: string, record: Members): void {
    const open = this.#place(record, 'delta-item')
    if (!open) return
    this.expect(open.type === type, 'delta-type', `${record.type} in a ${open.type}`)
    const part = partOf(record)
    const hasParts = type === 'message' || type === 'reasoning'
    this.expect(!hasParts || open.openPart === part, 'added-first', `${record.type} before its part`)
    this.expect(record.delta !== '', 'empty-delta', 'an empty delta')
    open.texts.set(part, (open.texts.get(part) ?? '') + String(record.delta))
  }

  #checkText(record: Members): void {
    const open = this.#place(record, 'done-item')
    const text = record.text ?? record.refusal ?? record.arguments ?? record.input
    this.expect(open?.texts.get(partOf(record)) === text, 'done-text', 'not the text of its deltas')
  }

  #endPart(record: Members): void {
    const open = this.#place(record, 'part-item')
    const part = membersOf(record.part)
    this.expect(open?.openPart === partOf(record), 'one-open', 'ends a part that is not open')
    this.expect(open?.texts.get(partOf(record)) === (part.text ?? part.refusal), 'done-text', 'not the whole part')
    if (open) open.openPart = undefined
  }

  #finish(record: Members): void {
    const item = membersOf(record.item)
    const open = this.#open
    this.expect(open !== undefined && open.id === item.id, 'added-first', 'an end without a start')
    this.expect(record.output_index === open?.index, 'output-index', `${record.output_index}`)
    this.expect(open?.openPart === undefined, 'one-open', 'a part is open')
    checkItem(this.findings, item)
    const texts = [...(open?.texts.values() ?? [])]
    this.expect(Bun.deepEquals(texts, textsOf(item)), 'item-whole', `${textsOf(item)} not ${texts}`)
    this.#done.push(item)
    this.#open = undefined
  }

  #end(event: string, response: Members): void {
    this.#last = event
    if (event === 'response.failed') {
      const { code, message } = membersOf(response.error)
      return this.expect(typeof code === 'string' && typeof message === 'string', 'error-keys', 'code and message')
    }
    this.expect(this.#open === undefined, 'one-open', 'an item is open at the end')
    checkResponse(this.findings, response)
    this.expect(response.status === event.slice('response.'.length), 'status', `${response.status}`)
    this.expect(Bun.deepEquals(response.output, this.#done), 'item-whole', 'the output is not the items')
    checkUsage(this.findings, response.usage)
  }

  protected end(): void {
    this.expect(this.#last !== undefined, 'terminal', 'no last event')
  }
}

function partOf({ content_index: content, summary_index: summary }: Members): string {
  return `${content ?? ''} ${summary ?? ''}`
}

/** The texts of an item in the order of its parts; an item without any has none. */
function textsOf(item: Members): unknown[] {
  const parts = [...listOf(item.content), ...listOf(item.summary)].map(membersOf)
  if (item.type === 'message' || item.type === 'reasoning') return parts.map((part) => part.text ?? part.refusal)
  const text = item.arguments ?? item.input
  return text === '' ? [] : [text]
}
