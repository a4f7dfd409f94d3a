// The official OpenAI client on Tollgate: the base URL ends in /v1, everything else is as usual.
//
//   npm install openai zod
//   TOLLGATE_KEY=sk-tg-… bun docs/recipes/openai.ts             every example
//   TOLLGATE_KEY=sk-tg-… bun docs/recipes/openai.ts text tools  some of them

import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { z } from 'zod'

const { TOLLGATE_URL = 'http://127.0.0.1:8080', TOLLGATE_KEY, TOLLGATE_MODEL } = process.env
const client = new OpenAI({ baseURL: `${TOLLGATE_URL}/v1`, apiKey: TOLLGATE_KEY })

/** Your model, or the one of the sandbox that is made for the example. */
const model = (sandbox: string) => TOLLGATE_MODEL ?? `sandbox/${sandbox}`
const user = (content: string) => ({ role: 'user' as const, content })
/** The cost of a call in USD. Tollgate adds it, so the client has no type for it. */
const costOf = (usage: object | undefined) => (usage as { cost?: number } | undefined)?.cost

const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const City = z.object({ city: z.string() })
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const functions: Record<string, (input: z.infer<typeof City>) => string> = {
  get_weather: ({ city }) => `it rains in ${city}`,
  get_time: ({ city }) => `it is noon in ${city}`,
}

const examples: Record<string, () => Promise<unknown>> = {
  async text() {
    const { choices, usage, _request_id } = await client.chat.completions.create({
      model: model('echo'),
      messages: [user('hello from the other side of the gate')],
    })
    const tokens = [usage?.prompt_tokens, usage?.completion_tokens]
    return { text: choices[0]?.message.content, tokens, cost: costOf(usage), request: _request_id }
  },

  async stream() {
    const stream = client.chat.completions.stream({
      model: model('echo'),
      messages: [user('hello from the other side of the gate')],
      // Without it the client cannot know tokens and cost of a stream.
      stream_options: { include_usage: true },
    })
    let pieces = 0
    stream.on('content', () => {
      pieces += 1
    })
    const { choices, usage } = await stream.finalChatCompletion()
    const tokens = [usage?.prompt_tokens, usage?.completion_tokens]
    return { text: choices[0]?.message.content, tokens, cost: costOf(usage), pieces }
  },

  async tools() {
    const messages: OpenAI.ChatCompletionMessageParam[] = [user('What is the weather like?')]
    const tools = [{ type: 'function' as const, function: { name: 'get_weather', parameters } }]
    for (;;) {
      const { choices } = await client.chat.completions.create({ model: model('tools'), messages, tools })
      const message = choices[0]?.message
      if (!message?.tool_calls) return { text: message?.content }
      messages.push(message)
      for (const call of message.tool_calls) {
        if (call.type !== 'function') continue
        const content = functions[call.function.name]?.(JSON.parse(call.function.arguments)) ?? 'no such tool'
        messages.push({ role: 'tool', tool_call_id: call.id, content })
      }
    }
  },

  /** The client's own loop, streamed. */
  async parallel() {
    const runner = client.chat.completions.runTools({
      model: model('tools'),
      stream: true,
      messages: [user('Weather and time, in parallel please.')],
      tools: Object.entries(functions).map(([name, run]) => ({
        type: 'function' as const,
        function: {
          name,
          description: '',
          parameters,
          parse: (text: string) => City.parse(JSON.parse(text)),
          function: run,
        },
      })),
    })
    return { text: await runner.finalContent() }
  },

  async thinking() {
    const ask = async (messages: OpenAI.ChatCompletionMessageParam[]) => {
      const body = { model: model('think'), reasoning_effort: 'low' as const, messages }
      const { choices } = await client.chat.completions.create(body)
      // The thoughts are in `reasoning_content`; sent back with the message, they stay with the conversation.
      return choices[0]?.message as OpenAI.ChatCompletionMessage & { reasoning_content?: string }
    }
    const first = await ask([user('why is it so')])
    const next = await ask([user('why is it so'), first, user('and then')])
    return { thinking: first.reasoning_content, text: first.content, next: next.content }
  },

  async image() {
    const content = [
      { type: 'text' as const, text: 'what is in this picture' },
      { type: 'image_url' as const, image_url: { url: `data:image/png;base64,${dot}` } },
    ]
    const { choices, usage } = await client.chat.completions.create({
      model: model('echo'),
      messages: [{ role: 'user', content }],
    })
    return { text: choices[0]?.message.content, tokens: [usage?.prompt_tokens, usage?.completion_tokens] }
  },

  async structured() {
    const Report = z.object({ city: z.string(), rain: z.boolean(), celsius: z.number() })
    const { choices } = await client.chat.completions.parse({
      model: model('echo'),
      messages: [user('Report the weather.')],
      response_format: zodResponseFormat(Report, 'report'),
    })
    return choices[0]?.message.parsed
  },

  async models() {
    const { data } = await client.models.list()
    return data.map(({ id }) => id)
  },

  async errors() {
    const body = { model: model('echo'), messages: [user('hello')] }
    const create = client.withOptions({ maxRetries: 0 }).chat.completions
    return {
      key: await caught(client.withOptions({ apiKey: 'sk-tg-wrong' }).chat.completions.create(body)),
      model: await caught(create.create({ ...body, model: 'unknown/model' })),
      limit: await caught(create.create({ ...body, model: 'sandbox/throttled' })),
      broken: await caught(create.stream({ ...body, model: 'sandbox/breaks-off' }).finalChatCompletion()),
    }
  },
}

/** The exception's class, and the word of Tollgate's vocabulary. */
async function caught(call: Promise<unknown>) {
  const error = await call.catch((thrown: unknown) => thrown)
  return error instanceof OpenAI.APIError ? [error.constructor.name, error.code, error.requestID] : error
}

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(examples)
for (const name of wanted) console.log(name, JSON.stringify(await examples[name]?.()))
