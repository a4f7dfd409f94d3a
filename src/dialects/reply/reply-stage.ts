// A step between the provider's parser and the caller's renderer that changes some of a reply's events. State lives as
// long as the stream. What goes in is a well-formed reply, and so is what comes out.

import type { ReplyEvent } from '../canonical/reply-event.ts'

export interface ReplyStage {
  push(event: ReplyEvent): readonly ReplyEvent[]
}

/** Passes a reply through all stages, first to last. */
export function throughStages(stages: readonly ReplyStage[], event: ReplyEvent): readonly ReplyEvent[] {
  let events: readonly ReplyEvent[] = [event]
  for (const stage of stages) {
    const [only, ...more] = events
    if (only === undefined) return events
    events = more.length === 0 ? stage.push(only) : events.flatMap((each) => stage.push(each))
  }
  return events
}
