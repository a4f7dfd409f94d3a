// What of a chunk or a reply is generated text, by the names hosts give it.

import { JsonTextMeter } from '../../wire/json-text-meter.ts'

/** `name`, `arguments` and `input` are those of tool calls. */
const textNames = ['content', 'refusal', 'reasoning_content', 'reasoning', 'name', 'arguments', 'input']

export const outputMeter = new JsonTextMeter(textNames)
