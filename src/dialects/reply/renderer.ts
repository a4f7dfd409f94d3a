// The common part of stream renderers: tracks the open block, holds back half characters and dispatches events.
// Dialects define how everything is written.

import { assert } from '../../kernel/failure.ts'
import type { Usage } from '../../kernel/usage.ts'
import type { ReplyBlock, ReplyEvent, Stop } from '../canonical/reply.ts'
import type { RenderContext, StreamRenderer } from '../canonical/translation.ts'

/** Every method returns the text to write, '' for nothing. */
export abstract class BlockRenderer implements StreamRenderer {
  terminal = ''
  protected block: ReplyBlock | undefined
  /** Signature of the open block, so far. */
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
        // The failure is rendered separately, from the failure table.
        return ''
    }
  }

  /** Must ignore a second start: the end of a reply starts it too, in case no start came. */
  protected abstract start(id: string | undefined, reported: Usage | undefined): string
  protected abstract startBlock(block: ReplyBlock): string
  /** Writes a piece of the open block's text, thinking or arguments; never ''. */
  protected abstract piece(text: string): string
  protected abstract endBlock(block: ReplyBlock): string
  /** Ends the reply and sets `terminal`. */
  protected abstract end(stop: Stop, usage: Usage): string

  protected keepAlive(): string {
    return ': keep-alive\n\n'
  }

  #usageOf(metered: Usage | undefined): Usage {
    return metered ?? this.context.quoteUsage(undefined, undefined, () => 0)
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

const idMax = 200

/** A reply's id with the prefix that clients of a dialect expect. */
export function prefixedId(prefix: string, id: string): string {
  const own = id.slice(0, idMax).toWellFormed()
  return own.startsWith(prefix) ? own : prefix + own
}

/** For dialects in which a refusal needs a text. */
export function refusalText(stop: Stop): string {
  return (stop.explanation ?? 'The model declined to answer this request.').toWellFormed()
}

// Joins text that was cut inside a surrogate pair. Providers cut emoji this way; half a pair is not valid Unicode, and
// strict readers reject a record with it.

export class WholeCharacters {
  /** A first half whose second half has not arrived. */
  #half = ''

  /** Returns the text that can be written now. */
  take(piece: string): string {
    if (piece === '') return ''
    const text = this.#half + piece
    const endsInside = isFirstHalf(text.charCodeAt(text.length - 1))
    this.#half = endsInside ? text.slice(-1) : ''
    return (endsInside ? text.slice(0, -1) : text).toWellFormed()
  }

  /** Returns the replacement for a half that was never completed. */
  rest(): string {
    const text = this.#half.toWellFormed()
    this.#half = ''
    return text
  }
}

function isFirstHalf(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
