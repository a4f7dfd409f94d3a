// The Vercel AI SDK on Tollgate, through each surface. All base URLs end in /v1; give `generateText` a model of one of
// these providers, since a bare string would go to Vercel's own gateway.
//
//   npm install ai @ai-sdk/openai-compatible @ai-sdk/anthropic @ai-sdk/openai zod
//   TOLLGATE_KEY=sk-tg-… bun docs/recipes/ai-sdk.ts             every example, through all surfaces
//   TOLLGATE_KEY=sk-tg-… bun docs/recipes/ai-sdk.ts text tools  some of them

import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import {
  APICallError,
  generateText,
  isStepCount,
  type LanguageModel,
  type ModelMessage,
  Output,
  streamText,
  tool,
} from 'ai'
import { z } from 'zod'

const { TOLLGATE_URL = 'http://127.0.0.1:8080', TOLLGATE_KEY = '', TOLLGATE_MODEL } = process.env
const baseURL = `${TOLLGATE_URL}/v1`

type Provider = (model: string) => LanguageModel
const surfaces: Record<string, (apiKey: string) => Provider> = {
  // Without the two flags streams tell no usage, and schemas are not enforced.
  chat: (apiKey) =>
    createOpenAICompatible({
      name: 'tollgate',
      baseURL,
      apiKey,
      includeUsage: true,
      supportsStructuredOutputs: true,
    }),
  messages: (apiKey) => createAnthropic({ baseURL, apiKey }),
  // The Responses API, as `openai('…')` does by default.
  responses: (apiKey) => createOpenAI({ baseURL, apiKey }),
}

/** Your model, or the one of the sandbox that is made for the example. */
const model = (sandbox: string) => TOLLGATE_MODEL ?? `sandbox/${sandbox}`

const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const inputSchema = z.object({ city: z.string() })
const get_weather = tool({ inputSchema, execute: async ({ city }) => `it rains in ${city}` })
const get_time = tool({ inputSchema, execute: async ({ city }) => `it is noon in ${city}` })
// The Anthropic provider warns of models it does not know and sets 4096 by itself.
const maxOutputTokens = 2000
const hello = 'hello from the other side of the gate'

type Example = (tollgate: Provider, withKey: (apiKey: string) => Provider) => Promise<unknown>

const examples: Record<string, Example> = {
  async text(tollgate) {
    const { text, usage, response } = await generateText({
      model: tollgate(model('echo')),
      prompt: hello,
      maxOutputTokens,
    })
    const tokens = [usage.inputTokens, usage.outputTokens]
    // `raw` has the usage as the API sent it, with the cost in USD.
    return { text, tokens, cost: usage.raw?.cost, request: response.headers?.['x-request-id'] }
  },

  async stream(tollgate) {
    const { textStream, usage } = streamText({ model: tollgate(model('echo')), prompt: hello, maxOutputTokens })
    const pieces = await Array.fromAsync(textStream)
    const { inputTokens, outputTokens, raw } = await usage
    return { text: pieces.join(''), tokens: [inputTokens, outputTokens], cost: raw?.cost, pieces: pieces.length }
  },

  async tools(tollgate) {
    const { text } = await generateText({
      model: tollgate(model('tools')),
      prompt: 'What is the weather like?',
      maxOutputTokens,
      tools: { get_weather },
      stopWhen: isStepCount(5),
    })
    return { text }
  },

  /** The same loop, streamed. */
  async parallel(tollgate) {
    const { text } = streamText({
      model: tollgate(model('tools')),
      prompt: 'Weather and time, in parallel please.',
      maxOutputTokens,
      tools: { get_weather, get_time },
      stopWhen: isStepCount(5),
    })
    return { text: await text }
  },

  async thinking(tollgate) {
    const user = (content: string) => ({ role: 'user' as const, content })
    const providerOptions = {
      tollgate: { reasoningEffort: 'low' },
      anthropic: { thinking: { type: 'adaptive' as const } },
      openai: { forceReasoning: true, reasoningEffort: 'low', reasoningSummary: 'auto' },
    }
    const think = tollgate(model('think'))
    const ask = (messages: ModelMessage[]) => generateText({ model: think, messages, maxOutputTokens, providerOptions })
    const first = await ask([user('why is it so')])
    // The answer's messages carry the thoughts, and what proves them genuine, back to the model.
    const next = await ask([user('why is it so'), ...first.response.messages, user('and then')])
    return { thinking: first.reasoningText, text: first.text, next: next.text }
  },

  async image(tollgate) {
    const content = [
      { type: 'text' as const, text: 'what is in this picture' },
      { type: 'file' as const, data: Buffer.from(dot, 'base64'), mediaType: 'image/png' },
    ]
    const { text, usage } = await generateText({
      model: tollgate(model('echo')),
      messages: [{ role: 'user', content }],
      maxOutputTokens,
    })
    return { text, tokens: [usage.inputTokens, usage.outputTokens] }
  },

  async structured(tollgate) {
    const schema = z.object({ city: z.string(), rain: z.boolean(), celsius: z.number() })
    const { output } = await generateText({
      model: tollgate(model('echo')),
      prompt: 'Report the weather.',
      maxOutputTokens,
      // For models it does not know, the Anthropic provider would ask by way of a tool.
      providerOptions: { anthropic: { structuredOutputMode: 'outputFormat' } },
      output: Output.object({ schema }),
    })
    return output
  },

  async errors(tollgate, withKey) {
    const ask = (from: Provider, name: string) =>
      generateText({ model: from(name), prompt: 'hello', maxOutputTokens, maxRetries: 0 }).catch(describe)
    return {
      key: await ask(withKey('sk-tg-wrong'), model('echo')),
      model: await ask(tollgate, 'unknown/model'),
      limit: await ask(tollgate, 'sandbox/throttled'),
      broken: await interruption(tollgate('sandbox/breaks-off')),
    }
  },
}

/** An error in a stream is one of its parts: what was said before it stays said. */
async function interruption(broken: LanguageModel) {
  const { stream } = streamText({ model: broken, prompt: 'hello', maxOutputTokens, onError: () => {} })
  for await (const part of stream) if (part.type === 'error') return describe(part.error)
}

/** The exception's class, and the word of Tollgate's vocabulary. */
function describe(error: unknown) {
  const { name, code } = error as { name: string; code?: string }
  if (!APICallError.isInstance(error)) return [name, code]
  const body = JSON.parse(error.responseBody ?? '{}') as { error?: { code?: string } }
  return [name, body.error?.code, error.responseHeaders?.['x-request-id']]
}

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(examples)
for (const [surface, withKey] of Object.entries(surfaces)) {
  const tollgate = withKey(TOLLGATE_KEY)
  for (const name of wanted) console.log(surface, name, JSON.stringify(await examples[name]?.(tollgate, withKey)))
}
