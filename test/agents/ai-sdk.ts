// The Vercel AI SDK with a tool, on the gateway's program with its default settings, while the provider fails before each
// answer: through each of its providers, whole and streamed.

import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, type LanguageModel, streamText, tool } from 'ai'
import { z } from 'zod'
import { failFirst } from '../parts/failing-provider.ts'
import { startUpstream } from '../parts/upstream.ts'
import { type Failures, startProgram, type Tried } from './real-agents.ts'
import { scriptedModel } from './scripted-model.ts'

const answer = 'The note is read.'
const note = 'gate 0 is open'
const read = tool({ inputSchema: z.object({ path: z.string() }), execute: async () => note })
const model = scriptedModel([{ tool: 'read', input: '{"path":"note.txt"}' }], answer)

/** All at once, each with two requests: one that ends with the tool call, one with its result. */
export async function tryAiSdk(failures: Failures): Promise<Tried> {
  const upstream = startUpstream(failFirst(failures.times, failures.hiccup, model))
  const program = await startProgram(upstream.url)
  const access = { baseURL: `${program.url}/v1`, apiKey: program.key }
  const openai = createOpenAI(access)
  const models: Readonly<Record<string, LanguageModel>> = {
    'openai, responses': openai('test/plain-1'),
    'openai, chat': openai.chat('test/plain-1'),
    anthropic: createAnthropic(access)('test/plain-1'),
  }
  // The prompts differ, because the provider knows a request by its body.
  const ask = (prompt: string, of: LanguageModel) => ({
    ...{ model: of, prompt, tools: { read }, maxOutputTokens: 50 },
    stopWhen: isStepCount(3),
  })
  const startedMs = performance.now()
  try {
    const talks = Object.entries(models).flatMap(([name, of]) => [
      { name: `${name}, whole`, text: generateText(ask(`${name}, whole`, of)).then(({ text }) => text) },
      { name: `${name}, streamed`, text: streamText(ask(`${name}, streamed`, of)).text },
    ])
    const ended = await Promise.allSettled(talks.map(({ text }) => text))
    const wrong = ended.map((each, at) => {
      if (each.status === 'rejected') return `${talks[at]?.name}: ${each.reason}`
      return each.value !== answer && `${talks[at]?.name}: answered "${each.value}"`
    })
    const calls = upstream.calls.length
    const expected = 2 * talks.length * (failures.times + 1)
    const results = upstream.calls.filter((call) => JSON.stringify(call.json()).includes(note)).length
    wrong.push(calls !== expected && `${calls} provider calls, not ${expected}`)
    wrong.push(results !== expected / 2 && `${results} of them with the result of the tool`)
    const faults = wrong.filter((fault) => typeof fault === 'string')
    return { faults, printed: '', seconds: (performance.now() - startedMs) / 1000 }
  } finally {
    await program.stop()
    upstream.stop()
  }
}
