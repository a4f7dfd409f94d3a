// What each sandbox model does, by the name it has upstream. Behaviours read a Prompt and answer with a Draft or a
// Refusal; they know neither wire, nor caps, nor streaming.

import type { Draft } from './compose-reply.ts'
import { writeJson } from './json-value.ts'
import { createPrefixCache } from './prefix-cache.ts'
import type { OfferedTool, Prompt } from './prompt.ts'
import { invalid, Refusal } from './refusal.ts'
import type { ToolCall } from './reply.ts'
import { exampleOf } from './schema-example.ts'
import { isSignedThinking } from './thinking-signature.ts'
import { takeTokens } from './token-count.ts'

export type Behaviour = (prompt: Prompt) => Draft | Refusal

const nothingToEcho = 'The sandbox has nothing to echo: send a user message with some text.'
const noTools = 'No tools were offered, so the sandbox has nothing to call.'
const toolsForbidden = 'The tool choice is none, so the sandbox calls nothing.'

const throttledSeconds = 12
const slowFirstMs = 1_500
const slowPerWordMs = 150
const slowFirstMsMax = 120_000

/** State (which call of the flaky model this is, which prefixes were seen) lives as long as the returned map. */
export function createBehaviours(): ReadonlyMap<string, Behaviour> {
  const prefixCache = createPrefixCache()
  let flakyCalls = 0

  return new Map<string, Behaviour>([
    ['echo', echo],
    ['tools', tools],
    ['think', think],
    ['cache', (prompt) => ({ ...echo(prompt), cached: prefixCache.look(prompt) })],
    ['slow', (prompt) => ({ ...echo(prompt), pace: { firstMs: firstWaitMs(prompt), perWordMs: slowPerWordMs } })],
    [
      'flaky-first',
      (prompt) => {
        flakyCalls += 1
        return flakyCalls % 2 === 1 ? unavailable(prompt) : echo(prompt)
      },
    ],
    ['flaky-second', echo],
    ['throttled', ({ model }) => new Refusal({ kind: 'throttled', model, retryAfterSeconds: throttledSeconds })],
    ['down', unavailable],
    ['breaks-off', (prompt) => ({ ...echo(prompt), breaksOff: true })],
  ])
}

function unavailable({ model }: Prompt): Refusal {
  return new Refusal({ kind: 'unavailable', model })
}

function echo(prompt: Prompt): Draft {
  const { format, lastUserText } = prompt
  if (format.schema !== undefined) return { text: writeJson(exampleOf(format.schema)) }
  if (format.json) return { text: writeJson({ echo: lastUserText }) }
  return { text: lastUserText.trim() === '' ? nothingToEcho : lastUserText }
}

function tools(prompt: Prompt): Draft {
  if (prompt.toolResults.length > 0) return { text: `The tool said: ${prompt.toolResults.join('; ')}` }
  if (!prompt.callsTools) return { text: toolsForbidden }
  const [first] = prompt.tools
  if (!first) return { text: noTools }
  const all = prompt.callsInParallel && /\bparallel\b/i.test(prompt.lastUserText)
  return { calls: (all ? prompt.tools : [first]).map(callOf) }
}

function callOf({ name, takes, schema }: OfferedTool): ToolCall {
  if (takes === 'text') return { name, takes, argumentsText: 'sandbox' }
  const example = exampleOf(schema)
  // Arguments are an object whatever the schema says; no client could take anything else.
  const isArguments = typeof example === 'object' && example !== null && !Array.isArray(example)
  return { name, takes, argumentsText: (isArguments && writeJson(example)) || '{}' }
}

function think(prompt: Prompt): Draft | Refusal {
  for (const { text, signature, at } of prompt.returnedThoughts) {
    if (!isSignedThinking(text, signature)) return invalid(`${at}: Invalid \`signature\` in \`thinking\` block`)
  }
  const question = prompt.lastUserText.trim()
  const text = question === '' ? nothingToEcho : `After some thought: ${question}`
  if (!prompt.thinks) return { text }
  const gist = takeTokens(question, 32)
  return { thinking: `The user wrote: ${gist}\nNothing has to be looked up, so I can answer at once.`, text }
}

/** `wait 5s` or `wait 200 ms` in the last user message sets the time to the first event. */
function firstWaitMs(prompt: Prompt): number {
  const wish = /\bwait (\d{1,6}(?:\.\d{1,3})?) ?(ms|s)\b/i.exec(prompt.lastUserText)
  if (!wish) return slowFirstMs
  const ms = Number(wish[1]) * (wish[2]?.toLowerCase() === 'ms' ? 1 : 1_000)
  return Math.min(slowFirstMsMax, Math.round(ms))
}
