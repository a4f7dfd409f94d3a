// Puts events together so that the grammar of replies holds whatever a provider sends: one start, one block at a time,
// deltas only inside a block of their kind, one end. Parsers say what they read; this says it in order.

import type { Usage } from '../../kernel/usage.ts'
import type { ProviderFault } from '../canonical/provider-fault.ts'
import { replyFault } from '../canonical/provider-fault.ts'
import type { ReplyBlock, ReplyEvent, Stop } from '../canonical/reply-event.ts'

export class ReplyBuilder {
  #events: ReplyEvent[] = []
  #open: ReplyBlock['kind'] | undefined
  #signed = false
  started = false
  /** Ended or failed: nothing more counts. */
  over = false
  /** Some block has been opened. */
  filled = false
  /** Something a client would show has been passed on. */
  hasOutput = false

  /** `sign` makes the signature of thinking that came without one, where the dialect has none. */
  constructor(private readonly sign?: () => string) {}

  get openKind(): ReplyBlock['kind'] | undefined {
    return this.#open
  }

  start(id: string | undefined, usage: Usage | undefined): void {
    if (this.started) return
    this.started = true
    this.#push({ type: 'reply-start', id, usage })
  }

  /** Ends the open block and starts this one. */
  open(block: ReplyBlock): void {
    this.close()
    this.#open = block.kind
    this.#signed = false
    this.filled = true
    this.hasOutput ||= block.kind === 'tool-call' || block.kind === 'sealed-thinking'
    this.#push({ type: 'block-start', block })
  }

  close(): void {
    if (this.#open === undefined) return
    if (this.#open === 'thinking' && !this.#signed && this.sign) this.signature(this.sign())
    this.#open = undefined
    this.#push({ type: 'block-end' })
  }

  /** Text, or the words of a refusal, in a block of that kind; one is opened where none is. */
  text(text: string, kind: 'text' | 'refusal' = 'text'): void {
    if (text === '') return
    if (this.#open !== kind) this.open({ kind })
    this.hasOutput = true
    this.#push({ type: 'text-delta', text })
  }

  thinking(text: string): void {
    if (text === '') return
    if (this.#open !== 'thinking') this.open({ kind: 'thinking' })
    this.hasOutput = true
    this.#push({ type: 'thinking-delta', text })
  }

  /** Counts only inside thinking. */
  signature(signature: string): void {
    if (signature === '' || this.#open !== 'thinking') return
    this.#signed = true
    this.#push({ type: 'signature', signature })
  }

  /** Counts only inside a tool call. */
  arguments(text: string): void {
    if (text !== '' && this.#open === 'tool-call') this.#push({ type: 'arguments-delta', text })
  }

  keepAlive(): void {
    this.#push({ type: 'keep-alive' })
  }

  end(stop: Stop, usage: Usage | undefined): void {
    this.close()
    this.#push({ type: 'reply-end', stop, usage })
    this.over = true
  }

  /** Leaves an open block open: what is in it is not all of it. */
  fail(fault: ProviderFault | string): void {
    this.#push({ type: 'reply-failure', fault: typeof fault === 'string' ? replyFault(fault) : fault })
    this.over = true
  }

  /** The events since the last call. */
  take(): readonly ReplyEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  #push(event: ReplyEvent): void {
    if (!this.over) this.#events.push(event)
  }
}
