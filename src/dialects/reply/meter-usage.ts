// What a reply consumed, at any point of it: as the provider reported, or estimated from what has passed. Bills and
// usage objects are made from the same count, so that a caller pays what it is shown.

import type { Usage } from '../../kernel/usage.ts'
import type { ReplyEvent } from '../canonical/reply-event.ts'
import type { ReplyStage } from './reply-stage.ts'

/** As for prompts; texts of any script come out near, and JSON a little high. */
const bytesPerToken = 4

/** Fills in the usage of a reply whose provider gives none. */
export class UsageMeter implements ReplyStage {
  #bytes = 0
  #reportedAtStart: Usage | undefined
  #reported: Usage | undefined

  constructor(private readonly estimatedInputTokens: number) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    switch (event.type) {
      case 'reply-start':
        this.#reportedAtStart = event.usage ?? this.#reportedAtStart
        break
      case 'block-start':
        if (event.block.kind === 'tool-call') this.#bytes += Buffer.byteLength(event.block.name)
        break
      case 'text-delta':
      case 'thinking-delta':
      case 'arguments-delta':
        this.#bytes += Buffer.byteLength(event.text)
        break
      case 'reply-end':
        this.#reported = event.usage
        if (event.usage === undefined) return [{ ...event, usage: this.usage }]
    }
    return [event]
  }

  /** While the reply runs, an estimate; input that was reported up front is not estimated again. */
  get usage(): Usage {
    if (this.#reported) return this.#reported
    const output = Math.ceil(this.#bytes / bytesPerToken)
    const start = this.#reportedAtStart
    if (start) return { ...start, outputTokens: Math.max(start.outputTokens, output), source: 'estimated' }
    return {
      inputTokens: this.estimatedInputTokens,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      cacheWriteLongTokens: 0,
      outputTokens: output,
      cacheReported: 'none',
      source: 'estimated',
    }
  }
}
