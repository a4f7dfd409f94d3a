// The official Anthropic client on Tollgate: the base URL is the root, without /v1; everything else is as usual.
//
//   npm install @anthropic-ai/sdk zod
//   TOLLGATE_KEY=sk-tg-… bun docs/recipes/anthropic.ts             every example
//   TOLLGATE_KEY=sk-tg-… bun docs/recipes/anthropic.ts text tools  some of them

import Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { z } from 'zod'

const { TOLLGATE_URL = 'http://127.0.0.1:8080', TOLLGATE_KEY, TOLLGATE_MODEL } = process.env
const client = new Anthropic({ baseURL: TOLLGATE_URL, apiKey: TOLLGATE_KEY })

/** Your model, or the one of the sandbox that is made for the example. */
const model = (sandbox: string) => TOLLGATE_MODEL ?? `sandbox/${sandbox}`
const user = (content: string) => ({ role: 'user' as const, content })
const textOf = (content: Anthropic.Beta.BetaContentBlock[] | Anthropic.ContentBlock[]) =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('')
/** The cost of a call in USD. Tollgate adds it, so the client has no type for it. */
const costOf = (usage: object) => (usage as { cost?: number }).cost

const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const City = z.object({ city: z.string() })
const functions: Record<string, (input: z.infer<typeof City>) => string> = {
  get_weather: ({ city }) => `it rains in ${city}`,
  get_time: ({ city }) => `it is noon in ${city}`,
}

const examples: Record<string, () => Promise<unknown>> = {
  async text() {
    const { content, usage, _request_id } = await client.messages.create({
      model: model('echo'),
      max_tokens: 1000,
      messages: [user('hello from the other side of the gate')],
    })
    const tokens = [usage.input_tokens, usage.output_tokens]
    return { text: textOf(content), tokens, cost: costOf(usage), request: _request_id }
  },

  async stream() {
    const stream = client.messages.stream({
      model: model('echo'),
      max_tokens: 1000,
      messages: [user('hello from the other side of the gate')],
    })
    let pieces = 0
    let cost: number | undefined
    stream.on('text', () => {
      pieces += 1
    })
    // The finished message keeps the counts it knows; the cost is in the event.
    stream.on('streamEvent', (event) => {
      if (event.type === 'message_delta') cost = costOf(event.usage)
    })
    const { content, usage } = await stream.finalMessage()
    return { text: textOf(content), tokens: [usage.input_tokens, usage.output_tokens], cost, pieces }
  },

  async tools() {
    const messages: Anthropic.MessageParam[] = [user('What is the weather like?')]
    const input_schema = { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] }
    const tools = [{ name: 'get_weather', input_schema }]
    for (;;) {
      const body = { model: model('tools'), max_tokens: 1000, messages, tools }
      const { content, stop_reason } = await client.messages.create(body)
      if (stop_reason !== 'tool_use') return { text: textOf(content) }
      messages.push({ role: 'assistant', content })
      const results = content.flatMap((block) => {
        if (block.type !== 'tool_use') return []
        const said = functions[block.name]?.(City.parse(block.input)) ?? 'no such tool'
        return [{ type: 'tool_result' as const, tool_use_id: block.id, content: said }]
      })
      messages.push({ role: 'user', content: results })
    }
  },

  /** The client's own loop, streamed. */
  async parallel() {
    const runner = client.beta.messages.toolRunner({
      model: model('tools'),
      max_tokens: 1000,
      stream: true,
      messages: [user('Weather and time, in parallel please.')],
      tools: Object.entries(functions).map(([name, run]) =>
        betaZodTool({ name, description: `${name} of a city`, inputSchema: City, run }),
      ),
    })
    const { content } = await runner.runUntilDone()
    return { text: textOf(content) }
  },

  async thinking() {
    const ask = (messages: Anthropic.MessageParam[]) =>
      client.messages.create({ model: model('think'), max_tokens: 4000, thinking: { type: 'adaptive' }, messages })
    const first = await ask([user('why is it so')])
    // Thinking blocks go back as they came, with their signatures.
    const next = await ask([user('why is it so'), { role: 'assistant', content: first.content }, user('and then')])
    const thinking = first.content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join('')
    return { thinking, text: textOf(first.content), next: textOf(next.content) }
  },

  async image() {
    const source = { type: 'base64' as const, media_type: 'image/png' as const, data: dot }
    const { content, usage } = await client.messages.create({
      model: model('echo'),
      max_tokens: 1000,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what is in this picture' },
            { type: 'image', source },
          ],
        },
      ],
    })
    return { text: textOf(content), tokens: [usage.input_tokens, usage.output_tokens] }
  },

  async structured() {
    const Report = z.object({ city: z.string(), rain: z.boolean(), celsius: z.number() })
    const { parsed_output } = await client.messages.parse({
      model: model('echo'),
      max_tokens: 1000,
      messages: [user('Report the weather.')],
      output_config: { format: zodOutputFormat(Report) },
    })
    return parsed_output
  },

  async models() {
    const { data } = await client.models.list()
    return data.map(({ id }) => id)
  },

  /** For any model; exact where its provider counts, else an estimate. */
  async count() {
    const messages = [user('hello from the other side of the gate')]
    const { input_tokens } = await client.messages.countTokens({ model: model('echo'), messages })
    return { tokens: input_tokens }
  },

  async errors() {
    const body = { model: model('echo'), max_tokens: 1000, messages: [user('hello')] }
    const { messages } = client.withOptions({ maxRetries: 0 })
    return {
      key: await caught(client.withOptions({ apiKey: 'sk-tg-wrong' }).messages.create(body)),
      model: await caught(messages.create({ ...body, model: 'unknown/model' })),
      limit: await caught(messages.create({ ...body, model: 'sandbox/throttled' })),
      broken: await caught(messages.stream({ ...body, model: 'sandbox/breaks-off' }).finalMessage()),
    }
  },
}

/** The exception's class, and the word of Tollgate's vocabulary. */
async function caught(call: Promise<unknown>) {
  const error = await call.catch((thrown: unknown) => thrown)
  if (!(error instanceof Anthropic.APIError)) return error
  const body = error.error as { error?: { code?: string } } | undefined
  return [error.constructor.name, body?.error?.code, error.requestID]
}

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(examples)
for (const name of wanted) console.log(name, JSON.stringify(await examples[name]?.()))
