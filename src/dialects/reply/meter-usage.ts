// Measures a reply in passing: the bytes of generated text, and what its provider counted. What is billed and shown is
// for the judge to say; the end of the reply carries that, whatever the provider wrote there.

import type { Usage } from '../../kernel/usage.ts'
import type { UsageJudge } from '../byte-lane/relay.ts'
import type { ReplyEvent } from '../canonical/reply-event.ts'
import type { ReplyStage } from './reply-stage.ts'

export class UsageMeter implements ReplyStage {
  outputBytes = 0
  /** What the provider said before the reply came to its end. */
  usageSoFar: Usage | undefined
  /** Of the whole reply, once it is there. */
  usage: Usage | undefined

  constructor(private readonly judge: UsageJudge) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    switch (event.type) {
      case 'reply-start':
        this.usageSoFar = event.usage ?? this.usageSoFar
        break
      case 'block-start':
        if (event.block.kind === 'tool-call') this.outputBytes += Buffer.byteLength(event.block.name)
        break
      case 'text-delta':
      case 'thinking-delta':
      case 'arguments-delta':
        this.outputBytes += Buffer.byteLength(event.text)
        break
      case 'reply-end':
        this.usage = this.judge.finalUsage(event.usage, this.usageSoFar, () => this.outputBytes)
        if (this.usage !== event.usage) return [{ ...event, usage: this.usage }]
    }
    return [event]
  }
}
