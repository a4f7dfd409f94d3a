// The grammar of Messages replies that official clients can rely on, as rules with names. Pure: events or a whole reply
// in, violations out. A stream that ends with an error event is well-formed; it is only not complete.

import type { SseEvent } from '../../../src/wire/sse.ts'
import { blockShapes, checkBlock, checkMessage, checkStop, checkUsage, usageNames } from './messages-shape.ts'
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

const deltaTexts: Readonly<Record<string, string>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
  input_json_delta: 'partial_json',
}

export function checkMessagesStream(events: readonly SseEvent[], level: Level = 'own'): Violation[] {
  return new MessagesStreamGrammar(level).check(events)
}

export function checkMessagesReply(reply: unknown, level: Level = 'own'): Violation[] {
  const findings = new Findings(level)
  const message = membersOf(reply)
  checkMessage(findings, message)
  const blocks = listOf(message.content).map(membersOf)
  findings.expectOfUs(blocks.length > 0, 'content', 'at least one block')
  for (const block of blocks) {
    checkBlock(findings, block)
    const isEmpty = block.type === 'text' && block.text === ''
    findings.expectOfUs(!isEmpty || blocks.length === 1, 'empty-text', 'an empty text block')
    findings.expect(block.type !== 'tool_use' || isMembers(block.input), 'tool-input', 'input is an object')
    findings.expect(block.type !== 'thinking' || 'signature' in block, 'signature', 'thinking has a signature')
  }
  checkStop(
    findings,
    message,
    blocks.some(({ type }) => type === 'tool_use'),
  )
  findings.expect(isWellFormed(reply), 'unicode', 'half a character')
  return findings.list
}

class MessagesStreamGrammar extends StreamGrammar {
  /** The open block. */
  #block: { readonly type: string; deltas: string[]; text: string } | undefined
  #blocks = 0
  #emptyTexts = 0
  #calls: string[] = []
  #isStarted = false
  #ending: Members | undefined
  #isStopped = false
  #isFailed = false

  protected record({ event, data }: SseEvent): void {
    const record = parseJson(data)
    if (!isMembers(record)) return this.expect(false, 'data-json', 'data is no object')
    this.expect(record.type === event, 'event-name', `event ${event} with type ${record.type}`)
    this.expect(!this.#isStopped && !this.#isFailed, 'after-end', 'a record behind the end')
    this.expect(isWellFormed(record), 'unicode', 'half a character')
    if (event === 'error') return this.#error(record)
    if (event === 'message_start') return this.#start(membersOf(record.message))
    if (event === 'ping') return this.expectOfUs(this.#isStarted, 'start-first', 'ping before message_start')
    this.expect(this.#isStarted, 'start-first', `${event} before message_start`)
    switch (event) {
      case 'content_block_start':
        return this.#open(record)
      case 'content_block_delta':
        return this.#delta(record)
      case 'content_block_stop':
        return this.#close(record)
      case 'message_delta':
        return this.#ended(record)
      case 'message_stop':
        this.#isStopped = true
        return this.expect(this.#ending !== undefined, 'message-delta', 'no message_delta before message_stop')
      default:
        // The dialect grows by events that clients pass over.
        this.expectOfUs(false, 'known-event', `unknown event ${event}`)
    }
  }

  #error(record: Members): void {
    this.#isFailed = true
    const error = membersOf(record.error)
    for (const name of ['type', 'message']) {
      this.expect(typeof error[name] === 'string', 'error-keys', `error.${name} is a string`)
    }
    this.expectOfUs(typeof error.code === 'string', 'error-keys', 'error.code is a string')
    this.expectOfUs(typeof record.request_id === 'string', 'error-keys', 'request_id is there')
  }

  #start(message: Members): void {
    this.expect(!this.#isStarted, 'start-first', 'a second message_start')
    this.#isStarted = true
    checkMessage(this.findings, message)
    this.expect(listOf(message.content).length === 0, 'start-first', 'content before it begins')
    this.expect(message.stop_reason === null, 'start-first', 'a stop before it begins')
    const usage = membersOf(message.usage)
    const input = usageNames.slice(0, 3).reduce((sum, name) => sum + Number(usage[name] ?? 0), 0)
    this.expect(input > 0, 'start-usage', 'no input tokens')
  }

  #open(record: Members): void {
    const block = membersOf(record.content_block)
    this.expect(this.#block === undefined, 'one-open', 'a block in a block')
    this.expectOfUs(this.#ending === undefined, 'message-delta', 'a block behind message_delta')
    this.expect(record.index === this.#blocks, 'block-index', `index ${record.index} where ${this.#blocks} is next`)
    checkBlock(this.findings, block)
    if (block.type === 'text' || block.type === 'thinking') {
      const isEmpty = [block.text, block.thinking, block.signature].every((text) => text === undefined || text === '')
      this.expect(isEmpty, 'block-keys', 'a block begins empty')
    }
    const hasInput = isMembers(block.input) && Object.keys(block.input).length === 0
    this.expectOfUs(block.type !== 'tool_use' || hasInput, 'tool-input', 'input begins as {}')
    this.#blocks += 1
    this.#block = { type: String(block.type), deltas: [], text: '' }
  }

  #delta(record: Members): void {
    const delta = membersOf(record.delta)
    const type = String(delta.type)
    if (!this.#block) return this.expect(false, 'one-open', 'a delta outside of a block')
    this.expect(record.index === this.#blocks - 1, 'block-index', `index ${record.index} is not the open block`)
    const shape = blockShapes[this.#block.type]
    // Unknown blocks may be filled by unknown deltas.
    if (!shape) return
    if (type === 'citations_delta') return this.expectOfUs(false, 'delta-kind', 'citations_delta, which we never send')
    this.expect(shape.deltas.includes(type), 'delta-kind', `${type} in ${this.#block.type}`)
    const text = delta[deltaTexts[type] ?? '']
    this.expect(typeof text === 'string', 'delta-text', `${type} has its text`)
    this.expect(this.#block.deltas.at(-1) !== 'signature_delta', 'signature', 'something behind the signature')
    this.#block.deltas.push(type)
    if (type !== 'signature_delta') this.#block.text += String(text)
  }

  #close(record: Members): void {
    const block = this.#block
    if (!block) return this.expect(false, 'one-open', 'a stop outside of a block')
    this.#block = undefined
    this.expect(record.index === this.#blocks - 1, 'block-index', `index ${record.index} is not the open block`)
    if (block.type === 'thinking') {
      this.expect(block.deltas.at(-1) === 'signature_delta', 'signature', 'thinking ends with its signature')
    }
    if (block.type === 'text' && block.text === '') this.#emptyTexts += 1
    if (block.type === 'tool_use') this.#calls.push(block.text)
  }

  #ended(record: Members): void {
    const delta = membersOf(record.delta)
    this.expect(this.#block === undefined, 'message-delta', 'message_delta inside a block')
    this.expect('stop_reason' in delta, 'message-delta', 'delta.stop_reason is there')
    for (const name of ['stop_sequence', 'stop_details', 'container']) {
      this.expectOfUs(name in delta, 'message-delta', `delta.${name} is there`)
    }
    this.#ending = delta
    checkStop(this.findings, delta, this.#calls.length > 0)
    checkUsage(this.findings, record.usage, this.findings.level === 'own' ? usageNames : ['output_tokens'])
  }

  protected end(): void {
    this.expect(this.#isFailed !== this.#isStopped, 'stop-last', 'message_stop or an error ends the stream')
    if (this.#isFailed) return
    this.expect(this.#block === undefined, 'one-open', 'a block without its stop')
    this.expectOfUs(this.#blocks > 0, 'content', 'at least one block')
    this.expectOfUs(this.#emptyTexts === 0 || this.#blocks === 1, 'empty-text', 'an empty text block')
    if (this.#ending?.stop_reason === 'max_tokens') return
    for (const text of this.#calls) {
      this.expect(text.trim() === '' || isMembers(parseJson(text)), 'tool-json', `input is no object: ${text}`)
    }
  }
}
