// The grammar of Chat Completions replies that official clients can rely on, as rules with names. Pure: events or a
// whole reply in, violations out. A stream that ends with an error record is well-formed; it is only not complete.

import type { SseEvent } from '../../../src/wire/sse.ts'
import { checkCall, checkFinish, checkHead, checkUsage } from './chat-shape.ts'
import { StreamGrammar } from './stream-grammar.ts'
import {
  Findings,
  isMembers,
  isWellFormed,
  type Level,
  listOf,
  type Members,
  membersOf,
  parseJson,
  type Violation,
} from './violation.ts'

export interface ChatAsked {
  /** stream_options.include_usage */
  readonly wantsUsage: boolean
  readonly level?: Level
}

const textNames = ['role', 'content', 'refusal', 'reasoning_content', 'reasoning']
const deltaNames = [...textNames, 'tool_calls', 'reasoning_details']

export function checkChatStream(events: readonly SseEvent[], asked: ChatAsked): Violation[] {
  return new ChatStreamGrammar(asked).check(events)
}

export function checkChatReply(reply: unknown, level: Level = 'own'): Violation[] {
  const findings = new Findings(level)
  const { choices, usage, ...head } = membersOf(reply)
  checkHead(findings, head, 'chat.completion')
  const choice = membersOf(listOf(choices)[0])
  const message = membersOf(choice.message)
  const calls = listOf(message.tool_calls).map(membersOf)
  findings.expect(listOf(choices).length === 1 && choice.index === 0, 'choices', 'one choice, numbered 0')
  findings.expect(message.role === 'assistant', 'role', 'the message is the assistant’s')
  const { content, refusal } = message
  findings.expect(content === null || typeof content === 'string', 'message-keys', 'content is a string or null')
  findings.expectOfUs(refusal === null || typeof refusal === 'string', 'message-keys', 'refusal is a string or null')
  findings.expectOfUs(!('tool_calls' in message) || calls.length > 0, 'tool-calls', 'an empty list is left out')
  const saysSomething = content !== null || calls.length > 0 || refusal !== null
  findings.expectOfUs(saysSomething, 'content', 'null beside nothing')
  for (const call of calls) checkCall(findings, call, choice.finish_reason === 'length')
  checkFinish(findings, choice, calls.length > 0)
  checkUsage(findings, usage)
  findings.expect(isWellFormed(reply), 'unicode', 'half a character')
  return findings.list
}

class ChatStreamGrammar extends StreamGrammar {
  readonly #calls: { type: unknown; id: unknown; name: unknown; text: string }[] = []
  #first: Members | undefined
  #finish: Members | undefined
  #hasDetails = false
  #hasUsage = false
  #isDone = false
  #isFailed = false

  constructor(private readonly asked: ChatAsked) {
    super(asked.level ?? 'own')
  }

  protected record({ event, data }: SseEvent): void {
    this.expect(!this.#isDone && !this.#isFailed, 'after-end', 'a record behind the end')
    this.expectOfUs(event === '', 'event-name', `records have no name, not ${event}`)
    if (data === '[DONE]') {
      this.#isDone = true
      return
    }
    const chunk = parseJson(data)
    if (!isMembers(chunk)) return this.expect(false, 'data-json', 'neither an object nor [DONE]')
    this.expect(isWellFormed(chunk), 'unicode', 'half a character')
    if ('error' in chunk) return this.#error(membersOf(chunk.error))
    const choices = listOf(chunk.choices)
    this.expect(Array.isArray(chunk.choices) && choices.length <= 1, 'choices', 'a list of at most one')
    // Some hosts start with an extra chunk that has no choice and no head.
    if (choices.length > 0 || this.findings.level === 'own') this.#head(chunk)
    this.#chunkUsage(chunk)
    if (choices.length > 0) this.#choice(membersOf(choices[0]), chunk === this.#first)
  }

  #head(chunk: Members): void {
    checkHead(this.findings, chunk, 'chat.completion.chunk')
    this.#first ??= chunk
    this.expect(chunk.id === this.#first.id, 'same-head', 'id is the same in all chunks')
    for (const name of ['created', 'model']) {
      this.expectOfUs(chunk[name] === this.#first[name], 'same-head', `${name} is the same in all chunks`)
    }
  }

  #error(error: Members): void {
    this.#isFailed = true
    this.expect(typeof error.message === 'string', 'error-keys', 'error.message is a string')
    for (const name of ['type', 'code']) {
      this.expectOfUs(typeof error[name] === 'string', 'error-keys', `error.${name} is a string`)
    }
    this.expectOfUs(error.param === null || typeof error.param === 'string', 'error-keys', 'error.param is there')
  }

  #chunkUsage(chunk: Members): void {
    if (!this.asked.wantsUsage) {
      return this.expectOfUs(!('usage' in chunk), 'usage-unasked', 'usage that was not requested')
    }
    this.expectOfUs(!this.#hasUsage, 'usage-last', 'a chunk behind the usage')
    this.expectOfUs(chunk.usage !== undefined, 'usage-last', 'usage is null until it comes')
    if (chunk.usage === null || chunk.usage === undefined) return
    this.#hasUsage = true
    // Clients take it from any chunk.
    this.expectOfUs(listOf(chunk.choices).length === 0, 'usage-last', 'usage in a chunk with a choice')
    this.expectOfUs(this.#finish !== undefined, 'usage-last', 'usage before the finish')
    checkUsage(this.findings, chunk.usage)
  }

  #choice(choice: Members, isFirst: boolean): void {
    const delta = membersOf(choice.delta)
    this.expect(choice.index === 0 && isMembers(choice.delta), 'choices', 'index 0 and a delta')
    this.expectOfUs('finish_reason' in choice, 'finish', 'finish_reason is there, if null')
    this.expectOfUs(this.#finish === undefined, 'after-finish', 'a choice behind the finish')
    if (isFirst) {
      this.expect(delta.role === 'assistant', 'role-first', 'the role comes first')
      this.expectOfUs(delta.content === '', 'role-first', 'an empty content comes with the role')
    } else this.expectOfUs(!('role' in delta), 'role-first', 'the role comes once')
    for (const [name, value] of Object.entries(delta)) {
      this.expectOfUs(deltaNames.includes(name), 'delta-keys', `unknown ${name}`)
      if (textNames.includes(name)) this.#text(name, value, isFirst)
      if (name === 'reasoning_details') this.#details(value)
      else if (name !== 'role') this.expectOfUs(!this.#hasDetails, 'details-last', 'output behind reasoning_details')
    }
    for (const call of listOf(delta.tool_calls)) this.#call(membersOf(call))
    if (choice.finish_reason !== null && choice.finish_reason !== undefined) {
      this.#finish = choice
      checkFinish(this.findings, choice, this.#calls.length > 0)
    }
  }

  #text(name: string, value: unknown, isFirst: boolean): void {
    this.expect(value === null || typeof value === 'string', 'delta-text', `${name} is text or null`)
    this.expectOfUs(typeof value === 'string' && (value !== '' || isFirst), 'delta-text', `${name} is some text`)
  }

  /** Official clients keep the last value only. */
  #details(value: unknown): void {
    this.expectOfUs(!this.#hasDetails, 'details-once', 'reasoning_details comes once, whole')
    this.expect(
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
    const isText = typeof text === 'string'
    if (index === this.#calls.length) {
      const isNamed = [call.id, called.name].every((value) => typeof value === 'string' && value !== '')
      this.expect(
        isNamed && (call.type === 'function' || call.type === 'custom'),
        'tool-first',
        'id, type and name first',
      )
      // Clients take a call's first delta without any.
      this.expectOfUs(isText, 'tool-arguments', 'arguments are text')
      this.#calls.push({ type: call.type, id: call.id, name: called.name, text: isText ? text : '' })
      return
    }
    this.expect(isText, 'tool-arguments', 'arguments are text')
    const open = this.#calls.at(-1)
    this.expect(
      open !== undefined && index === this.#calls.length - 1,
      'tool-index',
      `index ${index} is not the open call`,
    )
    const said: [unknown, unknown][] = [
      [call.id, open?.id],
      [call.type, open?.type],
      [called.name, open?.name],
    ]
    const isKept = said.every(([now, first]) => now === undefined || now === first)
    this.expect(isKept, 'tool-repeat', 'id, type or name changes behind the first delta')
    const isSilent = said.every(([now]) => now === undefined)
    this.expectOfUs(isSilent, 'tool-repeat', 'id, type or name behind the first delta')
    if (open && isText) open.text += text
  }

  protected end(): void {
    if (this.#isFailed) return this.expect(!this.#isDone, 'done-last', '[DONE] beside an error')
    this.expect(this.#isDone, 'done-last', 'no [DONE]')
    this.expect(this.#finish !== undefined, 'finish', 'no chunk with a finish_reason')
    this.expect(!this.asked.wantsUsage || this.#hasUsage, 'usage-last', 'no usage')
    const isCut = this.#finish?.finish_reason === 'length'
    for (const { type, text } of this.#calls) {
      const isJson = type === 'custom' || isCut || parseJson(text) !== undefined
      this.expect(isJson, 'tool-json', `arguments are no JSON: ${text}`)
    }
  }
}
