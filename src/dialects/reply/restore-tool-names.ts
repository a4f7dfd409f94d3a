// Gives tool calls the names the caller knows, where the request had to use others.

import type { ReplyEvent } from '../canonical/reply-event.ts'
import type { ReplyStage } from './reply-stage.ts'

export class RestoreToolNames implements ReplyStage {
  /** Upstream name → the caller's. */
  constructor(private readonly names: ReadonlyMap<string, string>) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (event.type !== 'block-start' || event.block.kind !== 'tool-call') return [event]
    const name = this.names.get(event.block.name)
    return [name === undefined ? event : { type: 'block-start', block: { ...event.block, name } }]
  }
}
