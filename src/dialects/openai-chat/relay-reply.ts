// A whole Chat Completions reply on the byte lane.

import { createReplyRelay } from '../byte-lane/relay.ts'
import { readErrorObject } from './failure.ts'
import { isEmptyReply } from './meaningful.ts'
import { outputMeter } from './output-meter.ts'
import { renderUsage } from './render-usage.ts'
import { readUsage } from './usage.ts'

export const relayReply = createReplyRelay({
  content: 'choices',
  readUsage,
  renderUsage,
  outputBytes(choices) {
    const json = Buffer.from(JSON.stringify(choices ?? null))
    return outputMeter.count(json, 0, json.length)
  },
  readErrorObject,
  isEmptyReply,
})
