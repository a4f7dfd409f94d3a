// LangChain.js on Tollgate, through either surface: the base URL ends in /v1 for ChatOpenAI, and is the root for
// ChatAnthropic.
//
//   npm install @langchain/core @langchain/openai @langchain/anthropic zod
//   TOLLGATE_KEY=sk-tg-… bun docs/recipes/langchain.ts             every example, through both surfaces
//   TOLLGATE_KEY=sk-tg-… bun docs/recipes/langchain.ts text tools  some of them

import { ChatAnthropic } from '@langchain/anthropic'
import type { AIMessage, AIMessageChunk, BaseMessage, UsageMetadata } from '@langchain/core/messages'
import { HumanMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { concat } from '@langchain/core/utils/stream'
import { ChatOpenAI } from '@langchain/openai'
import { z } from 'zod'

const { TOLLGATE_URL = 'http://127.0.0.1:8080', TOLLGATE_KEY = '', TOLLGATE_MODEL } = process.env

interface Options {
  readonly model: string
  readonly thinks?: boolean
  readonly apiKey?: string
}
type Connect = (options: Options) => ChatOpenAI | ChatAnthropic

const surfaces: Record<string, Connect> = {
  chat: ({ model, thinks, apiKey = TOLLGATE_KEY }) =>
    new ChatOpenAI({
      model,
      apiKey,
      configuration: { baseURL: `${TOLLGATE_URL}/v1` },
      maxRetries: 0,
      ...(thinks && { reasoning: { effort: 'low' } }),
    }),
  messages: ({ model, thinks, apiKey = TOLLGATE_KEY }) =>
    new ChatAnthropic({
      model,
      apiKey,
      anthropicApiUrl: TOLLGATE_URL,
      maxTokens: 4000,
      maxRetries: 0,
      ...(thinks && { thinking: { type: 'enabled', budget_tokens: 1024 } }),
    }),
}

/** Your model, or the one of the sandbox that is made for the example. */
const model = (sandbox: string) => TOLLGATE_MODEL ?? `sandbox/${sandbox}`

const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const hello = 'hello from the other side of the gate'
const schema = z.object({ city: z.string() })
const tools = [
  tool(({ city }) => `it rains in ${city}`, { name: 'get_weather', description: 'Weather of a city', schema }),
  tool(({ city }) => `it is noon in ${city}`, { name: 'get_time', description: 'Time in a city', schema }),
]

const examples: Record<string, (connect: Connect) => Promise<unknown>> = {
  async text(connect) {
    const answer = await connect({ model: model('echo') }).invoke(hello)
    // The usage as the API sent it, with the cost in USD.
    const { cost } = (answer.response_metadata.usage ?? {}) as { cost?: number }
    return { text: answer.text, tokens: tokensOf(answer), cost }
  },

  async stream(connect) {
    const chunks = await Array.fromAsync(await connect({ model: model('echo') }).stream(hello))
    const whole = chunks.reduce((sum, chunk) => concat(sum, chunk))
    return { text: whole.text, tokens: tokensOf(whole), pieces: chunks.filter(({ text }) => text !== '').length }
  },

  async tools(connect) {
    const bound = connect({ model: model('tools') }).bindTools(tools.slice(0, 1))
    return converse((messages) => bound.invoke(messages), 'What is the weather like?')
  },

  /** The same loop, streamed. */
  async parallel(connect) {
    const bound = connect({ model: model('tools') }).bindTools(tools)
    const ask = async (messages: BaseMessage[]) => {
      const chunks: AIMessageChunk[] = await Array.fromAsync(await bound.stream(messages))
      return chunks.reduce((sum, chunk) => concat(sum, chunk))
    }
    return converse(ask, 'Weather and time, in parallel please.')
  },

  async thinking(connect) {
    const thinker = connect({ model: model('think'), thinks: true })
    const question = new HumanMessage('why is it so')
    const first = await thinker.invoke([question])
    const next = await thinker.invoke([question, first, new HumanMessage('and then')])
    return { thinking: thoughtOf(first), text: first.text, next: next.text }
  },

  async image(connect) {
    const content = [
      { type: 'text', text: 'what is in this picture' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${dot}` } },
    ]
    const answer = await connect({ model: model('echo') }).invoke([new HumanMessage({ content })])
    return { text: answer.text, tokens: tokensOf(answer) }
  },

  async structured(connect) {
    const Report = z.object({ city: z.string(), rain: z.boolean(), celsius: z.number() })
    const reporter = connect({ model: model('echo') }).withStructuredOutput(Report, { method: 'jsonSchema' })
    return reporter.invoke('Report the weather.')
  },

  async errors(connect) {
    const ask = (options: Options) => connect(options).invoke('hello').catch(describe)
    const read = async () => Array.fromAsync(await connect({ model: 'sandbox/breaks-off' }).stream('hello'))
    return {
      key: await ask({ model: model('echo'), apiKey: 'sk-tg-wrong' }),
      model: await ask({ model: 'unknown/model' }),
      limit: await ask({ model: 'sandbox/throttled' }),
      broken: await read().catch(describe),
    }
  },
}

function tokensOf({ usage_metadata }: { usage_metadata?: UsageMetadata | undefined }) {
  return [usage_metadata?.input_tokens, usage_metadata?.output_tokens]
}

/** Asks until no tool is called any more. */
async function converse(ask: (messages: BaseMessage[]) => Promise<AIMessage>, question: string) {
  const messages: BaseMessage[] = [new HumanMessage(question)]
  for (;;) {
    const answer = await ask(messages)
    if (!answer.tool_calls?.length) return { text: answer.text }
    messages.push(answer)
    for (const call of answer.tool_calls) {
      const called = tools.find(({ name }) => name === call.name)
      if (called) messages.push(await called.invoke({ ...call, type: 'tool_call' }))
    }
  }
}

/** ChatAnthropic has thinking blocks; ChatOpenAI keeps the field as it came. */
function thoughtOf({ content, additional_kwargs }: AIMessage) {
  const blocks = typeof content === 'string' ? [] : content
  const thought = blocks.map((block) => (block.type === 'thinking' ? block.thinking : '')).join('')
  return thought || additional_kwargs.reasoning_content
}

/** The exception's class is the underlying client's, and so is what it carries. */
function describe(error: unknown) {
  const {
    code,
    error: body,
    requestID,
  } = error as { code?: string; error?: { error?: { code?: string } }; requestID?: string }
  return [(error as Error).constructor.name, code ?? body?.error?.code, requestID]
}

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(examples)
for (const [surface, connect] of Object.entries(surfaces)) {
  for (const name of wanted) console.log(surface, name, JSON.stringify(await examples[name]?.(connect)))
}
