// Keeps the first tool call of a reply, for callers that asked for one at a time of a provider that cannot promise it.

import type { ReplyEvent } from '../canonical/reply-event.ts'
import type { ReplyStage } from './reply-stage.ts'

export class SingleToolCall implements ReplyStage {
  #hasCall = false
  #isDropping = false
  /** A call was left out since the last block. */
  #isApart = false

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (event.type === 'block-start') {
      const { block } = event
      this.#isDropping = block.kind === 'tool-call' && this.#hasCall
      if (block.kind === 'tool-call') this.#hasCall = true
      if (this.#isDropping) this.#isApart = true
      else if (this.#isApart) {
        this.#isApart = false
        if (block.kind === 'text') return [{ type: 'block-start', block: { ...block, apart: true } }]
      }
    }
    if (!this.#isDropping || event.type === 'keep-alive') return [event]
    // Ends go through, whatever is left out.
    if (event.type === 'reply-end' || event.type === 'reply-failure') return [event]
    if (event.type === 'block-end') this.#isDropping = false
    return []
  }
}
