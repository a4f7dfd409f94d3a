// Puts the blocks of a reply together from its events, complete or not.

import { unreachable } from '../../kernel/failure.ts'
import type { AssistantBlock } from '../canonical/conversation.ts'
import type { ReplyBlock, ReplyEvent, Stop } from '../canonical/reply.ts'

export class ReplyBlocks {
  /** Why the reply ended; undefined = it has not ended. */
  stop: Stop | undefined
  readonly #closed: AssistantBlock[] = []
  #open: ReplyBlock | undefined
  #text = ''
  #taken = 0

  /** `textMax`: about as many characters are kept, in all blocks together. */
  constructor(private readonly textMax = Number.POSITIVE_INFINITY) {}

  take(event: ReplyEvent): void {
    if (event.type === 'block-start') {
      this.#close()
      this.#open = event.block
      if (this.textMax < Number.POSITIVE_INFINITY) this.#taken += JSON.stringify(event.block).length
    } else if (event.type === 'block-end') this.#close()
    else if (event.type === 'reply-end') this.stop = event.stop
    else if ('text' in event) {
      this.#taken += event.text.length
      if (this.#taken <= this.textMax) this.#text += event.text
    }
  }

  all(): readonly AssistantBlock[] {
    return this.#open ? [...this.#closed, blockOf(this.#open, this.#text)] : this.#closed
  }

  #close(): void {
    if (this.#open && (this.#text !== '' || this.#taken <= this.textMax))
      this.#closed.push(blockOf(this.#open, this.#text))
    this.#open = undefined
    this.#text = ''
  }
}

function blockOf(block: ReplyBlock, text: string): AssistantBlock {
  switch (block.kind) {
    case 'text':
    case 'refusal':
    case 'thinking':
      return { kind: block.kind, text }
    case 'sealed-thinking':
      return block
    case 'tool-call':
      return { ...block, arguments: text }
    default:
      return unreachable(block)
  }
}
