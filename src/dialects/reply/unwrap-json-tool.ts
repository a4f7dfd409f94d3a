// Takes back the hidden tool that stood for a JSON output format: its arguments are the answer. The caller's own tools
// are left alone.

import type { ReplyEvent } from '../canonical/reply-event.ts'
import type { ReplyStage } from './reply-stage.ts'

export class UnwrapJsonTool implements ReplyStage {
  /** Text that is passed on only if no JSON comes: in front of JSON it would spoil it. */
  #held: ReplyEvent[] = []
  #isHolding = false
  /** In the hidden call · in a block that is left out · in any other. */
  #block: 'json' | 'dropped' | 'other' = 'other'
  #hasJson = false
  #hasArguments = false
  #hasOwnCalls = false

  /** `tool`: the upstream name of the hidden tool. */
  constructor(private readonly tool: string) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    switch (event.type) {
      case 'block-start':
        return this.#start(event)
      case 'arguments-delta':
        if (this.#block !== 'json') break
        this.#hasArguments ||= event.text.trim() !== ''
        return [{ type: 'text-delta', text: event.text }]
      case 'block-end':
        return this.#endBlock(event)
      case 'reply-end':
        return [...this.#release(), this.#ended(event)]
      case 'keep-alive':
      case 'reply-failure':
        return [event]
    }
    return this.#pass(event)
  }

  #start(event: ReplyEvent & { type: 'block-start' }): readonly ReplyEvent[] {
    const { block } = event
    if (block.kind === 'tool-call' && block.name === this.tool) {
      this.#block = this.#hasJson ? 'dropped' : 'json'
      if (this.#hasJson) return []
      this.#hasJson = true
      this.#held = []
      return [{ type: 'block-start', block: { kind: 'text' } }]
    }
    if (block.kind === 'text') {
      this.#block = this.#hasJson ? 'dropped' : 'other'
      this.#isHolding = !this.#hasJson
      return this.#pass(event)
    }
    this.#block = 'other'
    if (block.kind !== 'tool-call') return this.#pass(event)
    // The reply is not the final one: there is something to say beside the call.
    this.#hasOwnCalls = true
    return [...this.#release(), event]
  }

  #endBlock(event: ReplyEvent): readonly ReplyEvent[] {
    const wasJson = this.#block === 'json'
    const passed = this.#pass(event)
    this.#block = 'other'
    this.#isHolding = false
    return wasJson && !this.#hasArguments ? [{ type: 'text-delta', text: '{}' }, event] : passed
  }

  #pass(event: ReplyEvent): readonly ReplyEvent[] {
    if (this.#block === 'dropped') return []
    if (!this.#isHolding) return [event]
    this.#held.push(event)
    return []
  }

  #release(): readonly ReplyEvent[] {
    const held = this.#held
    this.#held = []
    this.#isHolding = false
    return held
  }

  #ended(event: ReplyEvent & { type: 'reply-end' }): ReplyEvent {
    const { stop } = event
    if (!this.#hasJson || this.#hasOwnCalls || stop.unified !== 'tool-calls') return event
    return { ...event, stop: { ...stop, unified: 'end' } }
  }
}
