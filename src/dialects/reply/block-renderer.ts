// What renderers of streams share: keeping the open block, holding back half characters, and meeting events in the one
// order there is. How anything is written is for each dialect to say.

import { assert } from '../../kernel/assert.ts'
import type { Usage } from '../../kernel/usage.ts'
import type { ReplyBlock, ReplyEvent, Stop } from '../canonical/reply-event.ts'
import type { RenderContext, StreamRenderer } from '../canonical/translation.ts'
import { WholeCharacters } from './whole-characters.ts'

/** Every method answers with what is to be written, '' for nothing. */
export abstract class BlockRenderer implements StreamRenderer {
  terminal = ''
  protected block: ReplyBlock | undefined
  /** Of the open block, as far as it has come. */
  protected signature: string | undefined
  readonly #characters = new WholeCharacters()

  constructor(protected readonly context: RenderContext) {}

  render(event: ReplyEvent): string {
    switch (event.type) {
      case 'reply-start':
        return this.start(event.id, event.usage)
      case 'block-start':
        assert(this.block === undefined, 'one block at a time')
        this.block = event.block
        this.signature = undefined
        return this.startBlock(event.block)
      case 'text-delta':
      case 'thinking-delta':
      case 'arguments-delta':
        return this.#write(this.#characters.take(event.text))
      case 'signature':
        this.signature = event.signature
        return ''
      case 'block-end':
        return this.#endBlock()
      case 'reply-end':
        return this.start(undefined, undefined) + this.#endBlock() + this.end(event.stop, this.#usageOf(event.usage))
      case 'keep-alive':
        return this.keepAlive()
      case 'reply-failure':
        // Its words are the failure table's, not ours.
        return ''
    }
  }

  /** A second start, of another provider after an early one, says nothing new. */
  protected abstract start(id: string | undefined, reported: Usage | undefined): string
  protected abstract startBlock(block: ReplyBlock): string
  /** A piece of the open block's text, thinking or arguments; never ''. */
  protected abstract piece(text: string): string
  protected abstract endBlock(block: ReplyBlock): string
  /** The end of the reply; also sets `terminal`. */
  protected abstract end(stop: Stop, usage: Usage): string
  protected abstract keepAlive(): string

  #usageOf(metered: Usage | undefined): Usage {
    return metered ?? this.context.finalUsage(undefined, undefined, () => 0)
  }

  #write(text: string): string {
    return text === '' ? '' : this.piece(text)
  }

  #endBlock(): string {
    const { block } = this
    if (block === undefined) return ''
    const written = this.#write(this.#characters.rest()) + this.endBlock(block)
    this.block = undefined
    return written
  }
}
