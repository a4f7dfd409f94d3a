// The grammar of Chat Completions replies that official clients can rely on, as rules with names. Pure: events or a
// whole reply in, violations out. A stream that ends with an error record is well-formed; it is only not complete.

import type { SseEvent } from '../../src/wire/sse-reader.ts'
import {
  Findings,
  isCount,
  isMembers,
  isWellFormed,
  listOf,
  type Members,
  membersOf,
  parseJson,
  type Violation,
} from './violation.ts'

export interface ChatAsked {
  /** stream_options.include_usage */
  readonly wantsUsage: boolean
}

const finishReasons = ['stop', 'length', 'tool_calls', 'content_filter']
const deltaNames = ['role', 'content', 'refusal', 'tool_calls', 'reasoning_content', 'reasoning', 'reasoning_details']

export function checkChatStream(events: readonly SseEvent[], asked: ChatAsked): Violation[] {
  return new ChatStreamGrammar(asked).check(events)
}

export function checkChatReply(reply: unknown): Violation[] {
  const findings = new Findings()
  const { choices, usage, ...head } = membersOf(reply)
  checkHead(findings, head, 'chat.completion')
  const choice = membersOf(listOf(choices)[0])
  const message = membersOf(choice.message)
  const calls = listOf(message.tool_calls).map(membersOf)
  findings.expect(listOf(choices).length === 1 && choice.index === 0, 'choices', 'one choice, numbered 0')
  findings.expect(message.role === 'assistant', 'role', 'the message is the assistant’s')
  for (const name of ['content', 'refusal']) {
    const value = message[name]
    findings.expect(value === null || typeof value === 'string', 'message-keys', `${name} is a string or null`)
  }
  findings.expect(!('tool_calls' in message) || calls.length > 0, 'tool-calls', 'an empty list is left out')
  findings.expect(
    message.content !== null || calls.length > 0 || message.refusal !== null,
    'content',
    'null beside nothing',
  )
  for (const call of calls) checkCall(findings, call, choice.finish_reason === 'length')
  checkFinish(findings, choice, calls.length > 0)
  checkUsage(findings, usage)
  findings.expect(isWellFormed(reply), 'unicode', 'half a character')
  return findings.list
}

class ChatStreamGrammar {
  readonly #findings = new Findings()
  readonly #calls: { type: unknown; text: string }[] = []
  #first: Members | undefined
  #finish: Members | undefined
  #hasDetails = false
  #hasUsage = false
  #isDone = false
  #isFailed = false

  constructor(private readonly asked: ChatAsked) {}

  check(events: readonly SseEvent[]): Violation[] {
    for (const [at, event] of events.entries()) {
      this.#findings.at = at
      this.#record(event)
    }
    this.#findings.at = undefined
    this.#end()
    return this.#findings.list
  }

  #expect(isHeld: boolean, rule: string, what: string): void {
    this.#findings.expect(isHeld, rule, what)
  }

  #record({ event, data }: SseEvent): void {
    this.#expect(!this.#isDone && !this.#isFailed, 'after-end', 'a record behind the end')
    this.#expect(event === '', 'event-name', `records have no name, not ${event}`)
    if (data === '[DONE]') {
      this.#isDone = true
      return
    }
    const chunk = parseJson(data)
    if (!isMembers(chunk)) return this.#expect(false, 'data-json', 'neither an object nor [DONE]')
    this.#expect(isWellFormed(chunk), 'unicode', 'half a character')
    if ('error' in chunk) return this.#error(membersOf(chunk.error))
    checkHead(this.#findings, chunk, 'chat.completion.chunk')
    this.#first ??= chunk
    for (const name of ['id', 'created', 'model']) {
      this.#expect(chunk[name] === this.#first[name], 'same-head', `${name} is the same in all chunks`)
    }
    this.#chunkUsage(chunk)
    const choices = listOf(chunk.choices)
    this.#expect(Array.isArray(chunk.choices) && choices.length <= 1, 'choices', 'a list of at most one')
    if (choices.length > 0) this.#choice(membersOf(choices[0]), chunk === this.#first)
  }

  #error(error: Members): void {
    this.#isFailed = true
    for (const name of ['message', 'type', 'code']) {
      this.#expect(typeof error[name] === 'string', 'error-keys', `error.${name} is a string`)
    }
    this.#expect(error.param === null || typeof error.param === 'string', 'error-keys', 'error.param is there')
  }

  #chunkUsage(chunk: Members): void {
    if (!this.asked.wantsUsage) return this.#expect(!('usage' in chunk), 'usage-unasked', 'usage that nobody asked for')
    this.#expect(!this.#hasUsage, 'usage-last', 'a chunk behind the usage')
    if (chunk.usage === null) return
    this.#hasUsage = true
    this.#expect(listOf(chunk.choices).length === 0, 'usage-last', 'usage in a chunk with a choice')
    this.#expect(this.#finish !== undefined, 'usage-last', 'usage before the finish')
    checkUsage(this.#findings, chunk.usage)
  }

  #choice(choice: Members, isFirst: boolean): void {
    const delta = membersOf(choice.delta)
    this.#expect(choice.index === 0 && isMembers(choice.delta), 'choices', 'index 0 and a delta')
    this.#expect('finish_reason' in choice, 'finish', 'finish_reason is there, if null')
    this.#expect(this.#finish === undefined, 'after-finish', 'a choice behind the finish')
    if (isFirst)
      this.#expect(delta.role === 'assistant' && delta.content === '', 'role-first', 'role and an empty content first')
    else this.#expect(!('role' in delta), 'role-first', 'the role comes once')
    for (const [name, value] of Object.entries(delta)) {
      this.#expect(deltaNames.includes(name), 'delta-keys', `unknown ${name}`)
      const isText = typeof value === 'string' && (value !== '' || isFirst)
      if (!name.startsWith('tool') && name !== 'reasoning_details')
        this.#expect(isText, 'delta-text', `${name} is text`)
      if (name === 'reasoning_details') this.#details(value)
      else if (name !== 'role') this.#expect(!this.#hasDetails, 'details-last', 'output behind reasoning_details')
    }
    for (const call of listOf(delta.tool_calls)) this.#call(membersOf(call))
    if (choice.finish_reason !== null) {
      this.#finish = choice
      checkFinish(this.#findings, choice, this.#calls.length > 0)
    }
  }

  /** Official clients keep the last value only. */
  #details(value: unknown): void {
    this.#expect(!this.#hasDetails, 'details-once', 'reasoning_details comes once, whole')
    this.#expect(
      listOf(value).every((detail) => typeof membersOf(detail).type === 'string'),
      'details-keys',
      'a type each',
    )
    this.#hasDetails = true
  }

  #call(call: Members): void {
    const { index } = call
    const called = membersOf(call.function ?? call.custom)
    const text = called.arguments ?? called.input
    this.#expect(typeof text === 'string', 'tool-arguments', 'arguments are text')
    if (index === this.#calls.length) {
      const isNamed = [call.id, called.name].every((value) => typeof value === 'string' && value !== '')
      this.#expect(
        isNamed && (call.type === 'function' || call.type === 'custom'),
        'tool-first',
        'id, type and name first',
      )
      this.#calls.push({ type: call.type, text: String(text) })
      return
    }
    const open = this.#calls.at(-1)
    this.#expect(
      open !== undefined && index === this.#calls.length - 1,
      'tool-index',
      `index ${index} is not the open call`,
    )
    const repeated = ['id', 'type'].some((name) => name in call) || 'name' in called
    this.#expect(!repeated, 'tool-repeat', 'id, type or name behind the first delta')
    if (open) open.text += String(text)
  }

  #end(): void {
    if (this.#isFailed) return this.#expect(!this.#isDone, 'done-last', '[DONE] beside an error')
    this.#expect(this.#isDone, 'done-last', 'no [DONE]')
    this.#expect(this.#finish !== undefined, 'finish', 'no chunk with a finish_reason')
    this.#expect(!this.asked.wantsUsage || this.#hasUsage, 'usage-last', 'no usage')
    const isCut = this.#finish?.finish_reason === 'length'
    for (const { type, text } of this.#calls) {
      const isJson = type === 'custom' || isCut || parseJson(text) !== undefined
      this.#expect(isJson, 'tool-json', `arguments are no JSON: ${text}`)
    }
  }
}

function checkHead(findings: Findings, head: Members, object: string): void {
  findings.expect(head.object === object, 'object', `object is ${object}`)
  findings.expect(typeof head.id === 'string' && head.id.startsWith('chatcmpl-'), 'id', 'an id of chatcmpl-…')
  findings.expect(isCount(head.created) && head.created > 0, 'created', 'created is in seconds')
  findings.expect(typeof head.model === 'string' && head.model !== '', 'model', 'a model')
}

function checkCall(findings: Findings, call: Members, isCut: boolean): void {
  const called = membersOf(call.function ?? call.custom)
  const isNamed = [call.id, called.name].every((value) => typeof value === 'string' && value !== '')
  findings.expect(isNamed, 'tool-first', 'id and name')
  const text = call.type === 'custom' ? called.input : called.arguments
  findings.expect(typeof text === 'string', 'tool-arguments', 'arguments are text')
  const isJson = call.type === 'custom' || isCut || parseJson(String(text)) !== undefined
  findings.expect(isJson, 'tool-json', `arguments are no JSON: ${text}`)
}

function checkFinish(findings: Findings, { finish_reason: finish }: Members, hasCalls: boolean): void {
  findings.expect(finishReasons.includes(String(finish)), 'finish', `finish_reason ${finish}`)
  findings.expect(finish !== 'tool_calls' || hasCalls, 'finish-tools', 'tool_calls without a call')
  findings.expect(finish !== 'stop' || !hasCalls, 'finish-tools', 'stop with calls to answer')
}

function checkUsage(findings: Findings, value: unknown): void {
  const usage = membersOf(value)
  const { prompt_tokens: prompt, completion_tokens: output, total_tokens: total, cost } = usage
  const details = membersOf(usage.prompt_tokens_details)
  findings.expect(isCount(prompt) && isCount(output) && isCount(total), 'usage-keys', 'three counts')
  findings.expect(Number(prompt) + Number(output) === total, 'usage-sum', `${prompt} + ${output} is not ${total}`)
  const cached = Number(details.cached_tokens ?? 0) + Number(details.cache_write_tokens ?? 0)
  findings.expect(cached <= Number(prompt), 'usage-sum', 'more cached than there is')
  findings.expect(cost === undefined || (typeof cost === 'number' && cost >= 0), 'usage-cost', 'cost is a number')
}
