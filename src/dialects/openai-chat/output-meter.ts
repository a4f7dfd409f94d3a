// What of a chunk or a reply is generated text, by the names hosts give it, and what else is to be known of it in passing.

import { JsonTextMeter } from '../../wire/json-text-meter.ts'

/** `name`, `arguments` and `input` are those of tool calls, `transcript` is what was spoken. */
const textNames = ['content', 'refusal', 'reasoning_content', 'reasoning', 'name', 'arguments', 'input', 'transcript']

/** Bits of `outputMeter.seen`: the reply says that it ended · it calls a tool. */
export const seenEnd = 0b01
export const seenCall = 0b10

/** Its `seen` is a scratch pad: read right behind the count that wrote it. */
export const outputMeter = new JsonTextMeter(textNames, ['finish_reason', 'name'])
