// A whole Messages reply on the byte lane.

import { createReplyRelay } from '../byte-lane/reply-relay.ts'
import { readErrorObject } from './failure.ts'
import { mergeUsage, readUsage } from './usage.ts'

export const relayReply = createReplyRelay({
  content: 'content',
  readUsage: (usage) => readUsage(mergeUsage({}, usage)),
  readErrorObject,
})
