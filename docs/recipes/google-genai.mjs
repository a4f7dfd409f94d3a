// Google's Gen AI client on Tollgate: the base URL is the root, without /v1beta; everything else is as usual.
//
//   npm install @google/genai
//   TOLLGATE_KEY=sk-tg-… node docs/recipes/google-genai.mjs             every example
//   TOLLGATE_KEY=sk-tg-… node docs/recipes/google-genai.mjs text tools  some of them

import { ApiError, GoogleGenAI } from '@google/genai'

const { TOLLGATE_URL = 'http://127.0.0.1:8080', TOLLGATE_KEY, TOLLGATE_MODEL } = process.env
const connect = (apiKey) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: TOLLGATE_URL } })
const ai = connect(TOLLGATE_KEY)

/** Your model, or the one of the sandbox that is made for the example. */
const model = (sandbox) => TOLLGATE_MODEL ?? `sandbox/${sandbox}`
const tokensOf = (usage) => [usage?.promptTokenCount, usage?.candidatesTokenCount]

const hello = 'hello from the other side of the gate'
const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const functions = {
  get_weather: ({ city }) => `it rains in ${city}`,
  get_time: ({ city }) => `it is noon in ${city}`,
}
const parametersJsonSchema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const toolsOf = (...names) => [{ functionDeclarations: names.map((name) => ({ name, parametersJsonSchema })) }]
const resultsOf = (calls) =>
  calls.map(({ id, name, args }) => ({
    functionResponse: { id, name, response: { output: functions[name]?.(args) ?? 'no such tool' } },
  }))

const examples = {
  async text() {
    const reply = await ai.models.generateContent({ model: model('echo'), contents: hello })
    const { usageMetadata: usage, sdkHttpResponse } = reply
    // `cost`, in USD, is Tollgate's addition.
    const request = sdkHttpResponse?.headers?.['x-request-id']
    return { text: reply.text, tokens: tokensOf(usage), cost: usage?.cost, request }
  },

  async stream() {
    let text = ''
    let pieces = 0
    let usage
    for await (const chunk of await ai.models.generateContentStream({ model: model('echo'), contents: hello })) {
      text += chunk.text ?? ''
      pieces += 1
      usage = chunk.usageMetadata ?? usage
    }
    return { text, tokens: tokensOf(usage), cost: usage?.cost, pieces }
  },

  async tools() {
    const config = { tools: toolsOf('get_weather') }
    // A chat keeps the model's parts as they came, with their thought signatures.
    const chat = ai.chats.create({ model: model('tools'), config })
    let reply = await chat.sendMessage({ message: 'What is the weather like?' })
    while (reply.functionCalls) reply = await chat.sendMessage({ message: resultsOf(reply.functionCalls) })
    return { text: reply.text }
  },

  /** The same loop, streamed. */
  async parallel() {
    const chat = ai.chats.create({ model: model('tools'), config: { tools: toolsOf('get_weather', 'get_time') } })
    let message = 'Weather and time, in parallel please.'
    for (;;) {
      const calls = []
      let text = ''
      for await (const chunk of await chat.sendMessageStream({ message })) {
        calls.push(...(chunk.functionCalls ?? []))
        if (!chunk.functionCalls) text += chunk.text ?? ''
      }
      if (calls.length === 0) return { text }
      message = resultsOf(calls)
    }
  },

  async thinking() {
    const thinkingConfig = { includeThoughts: true, thinkingLevel: 'LOW' }
    const chat = ai.chats.create({ model: model('think'), config: { thinkingConfig } })
    const first = await chat.sendMessage({ message: 'why is it so' })
    const next = await chat.sendMessage({ message: 'and then' })
    const parts = first.candidates?.[0]?.content?.parts ?? []
    const thinking = parts.map(({ thought, text }) => (thought ? text : '')).join('')
    return { thinking, text: first.text, next: next.text }
  },

  async image() {
    const contents = [{ text: 'what is in this picture' }, { inlineData: { mimeType: 'image/png', data: dot } }]
    const reply = await ai.models.generateContent({ model: model('echo'), contents })
    return { text: reply.text, tokens: tokensOf(reply.usageMetadata) }
  },

  async structured() {
    const properties = { city: { type: 'string' }, rain: { type: 'boolean' }, celsius: { type: 'number' } }
    const responseJsonSchema = { type: 'object', properties, required: Object.keys(properties) }
    const { text } = await ai.models.generateContent({
      model: model('echo'),
      contents: 'Report the weather.',
      config: { responseMimeType: 'application/json', responseJsonSchema },
    })
    return JSON.parse(text ?? '')
  },

  async models() {
    const names = []
    for await (const { name } of await ai.models.list()) names.push(name?.replace('models/', ''))
    return names
  },

  /** For any model, by an estimate. */
  async count() {
    const { totalTokens } = await ai.models.countTokens({ model: model('echo'), contents: hello })
    return { tokens: totalTokens }
  },

  async errors() {
    const request = { model: model('echo'), contents: 'hello' }
    const drain = async (chunks) => {
      for await (const _ of await chunks);
    }
    return {
      key: await caught(connect('sk-tg-wrong').models.generateContent(request)),
      model: await caught(ai.models.generateContent({ ...request, model: 'unknown/model' })),
      limit: await caught(ai.models.generateContent({ ...request, model: 'sandbox/throttled' })),
      broken: await caught(drain(ai.models.generateContentStream({ ...request, model: 'sandbox/breaks-off' }))),
    }
  },
}

/** The exception's class, and the word of Tollgate's vocabulary. The exception's message is the body of the answer. */
async function caught(call) {
  const error = await call.catch((thrown) => thrown)
  if (!(error instanceof ApiError)) return String(error)
  const body = JSON.parse(error.message.slice(error.message.indexOf('{')))
  return [error.name, body.error.details[0].reason]
}

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(examples)
for (const name of wanted) console.log(name, JSON.stringify(await examples[name]?.()))
