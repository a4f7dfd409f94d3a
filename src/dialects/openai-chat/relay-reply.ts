// A whole Chat Completions reply on the byte lane.

import { createReplyRelay } from '../byte-lane/reply-relay.ts'
import { readErrorObject } from './failure.ts'
import { readUsage } from './usage.ts'

export const relayReply = createReplyRelay({ content: 'choices', readUsage, readErrorObject })
