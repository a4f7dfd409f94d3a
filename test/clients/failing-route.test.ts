// A model whose only route fails for a moment, or permanently, as the official clients for JavaScript and Python see it.
// The clients do not retry here: only the gateway does.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { createWallets, nanos } from '../money/wallets.ts'
import { failFirst, hiccups } from '../parts/failing-provider.ts'
import { requestRecords, startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { chatClientNames, isChatClient, messageClientNames, readError } from '../parts/official-clients.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'
import { fetchPython, pythonVersions } from '../recipes/python.ts'
import { createTalk } from './talk.ts'

const clock = createJumpClock()
/** Before each test: the balance in nano-dollars, and how many requests were recorded. */
let before = { balance: 0n, records: 0 }

const upstream = startUpstream(() => {})
const gateway = await startGateway({ config: upstreamConfig(upstream.url), clock })
const wallets = createWallets(gateway)
beforeEach(async () => {
  // After a day no failure of an earlier test counts against a route.
  clock.jump(86_400)
  upstream.calls.length = 0
  before = { balance: (await wallets.read()).posted, records: (await requestRecords(gateway, 0)).length }
})
afterAll(() => stopAll(gateway, upstream))

/** 3 tokens in at $1.00 and 2 out at $2.00 per million. */
const cost = '0.000007'

/** Every request since the beginning of the test was charged once, after three calls to the provider. */
async function expectPaidOnce(requests = 1): Promise<void> {
  expect(upstream.calls).toHaveLength(3 * requests)
  const all = await requestRecords(gateway, before.records + requests)
  const records = all.slice(before.records, before.records + requests)
  expect(records.map(({ status, cost }) => [status, cost])).toEqual(Array.from({ length: requests }, () => [200, cost]))
  expect((await wallets.read()).posted).toBe(before.balance - BigInt(requests) * nanos(cost))
}

const modes = ['whole', 'streamed'] as const

for (const name of [...chatClientNames, ...messageClientNames]) {
  describe(name, () => {
    // Over the other dialect, where a stream's usage is rendered by the gateway as every client reads it.
    const model = isChatClient(name) ? 'test/messages' : 'test/chat'

    describe.each([...modes])('%s', (mode) => {
      test.each(Object.keys(hiccups))('gets the answer when the first two calls meet %s', async (hiccup) => {
        upstream.handle(failFirst(2, hiccup, answerHello))
        const reply = await createTalk(name, gateway)({ model, turns: ['hi'] }, mode)
        expect(reply.text).toBe('hello')
        await expectPaidOnce()
      })

      test.each(['a 529', 'a reset connection'])('gets one clear error when every call meets %s', async (hiccup) => {
        upstream.handle(failFirst(Number.POSITIVE_INFINITY, hiccup, answerHello))
        const error = await readError(name, createTalk(name, gateway)({ model, turns: ['hi'] }, mode))
        expect(error).toMatchObject({ exception: 'NotFoundError', code: 'NOT_FOUND' })
        expect(String(error.text)).toMatch(/exists, but its provider \w+ is failing \((\d+|broken) after 3 tries\)/)
        expect(error.headers?.get('x-should-retry')).toBe('true')
        expect(upstream.calls).toHaveLength(3)
        expect((await wallets.read()).posted).toBe(before.balance)
      })
    })
  })
}

/** Prints the answers to the questions on the command line, whole and streamed, or the errors. */
const programs = {
  openai: `
import openai, os, sys
client = openai.OpenAI(base_url=os.environ["TOLLGATE_URL"] + "/v1", api_key=os.environ["TOLLGATE_KEY"], max_retries=0)
for question in sys.argv[1:]:
    # Another cap, so that the provider can tell it from the stream.
    ask = dict(model="test/messages", messages=[{"role": "user", "content": question}])
    try:
        print(client.chat.completions.create(max_tokens=8, **ask).choices[0].message.content)
        stream = client.chat.completions.create(max_tokens=9, stream=True, **ask)
        print("".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices))
    except openai.APIStatusError as error:
        print(type(error).__name__, error.code, error.response.headers["x-should-retry"], error.message)
`,
  anthropic: `
import anthropic, os, sys
client = anthropic.Anthropic(base_url=os.environ["TOLLGATE_URL"], api_key=os.environ["TOLLGATE_KEY"], max_retries=0)
for question in sys.argv[1:]:
    # Another cap, so that the provider can tell it from the stream.
    ask = dict(model="test/chat", messages=[{"role": "user", "content": question}])
    try:
        print(client.messages.create(max_tokens=8, **ask).content[0].text)
        with client.messages.stream(max_tokens=9, **ask) as stream:
            print("".join(stream.text_stream))
    except anthropic.APIStatusError as error:
        body = error.body["error"]
        print(type(error).__name__, body["code"], error.response.headers["x-should-retry"], body["message"])
`,
  'google-genai': `
import os, sys
from google import genai
from google.genai import errors
client = genai.Client(api_key=os.environ["TOLLGATE_KEY"], http_options={"base_url": os.environ["TOLLGATE_URL"]})
for question in sys.argv[1:]:
    ask = dict(model="test/chat", contents=question)
    try:
        # Another cap, so that the provider can tell it from the stream.
        print(client.models.generate_content(config={"max_output_tokens": 8}, **ask).text)
        stream = client.models.generate_content_stream(config={"max_output_tokens": 9}, **ask)
        print("".join(chunk.text or "" for chunk in stream))
    except errors.APIError as error:
        reason = error.details["error"]["details"][0]["reason"]
        print(type(error).__name__, reason, error.response.headers["x-should-retry"], error.message)
`,
}

async function runPython(python: string, program: string, questions: readonly string[]): Promise<string[]> {
  const child = Bun.spawn([python, '-c', program, ...questions], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    env: { PATH: process.env.PATH ?? '', TOLLGATE_URL: gateway.url, TOLLGATE_KEY: gateway.key },
  })
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return `${output}${errors}`.trim().split('\n')
}

for (const name of ['openai', 'anthropic', 'google-genai'] as const) {
  const { python, missing } = await fetchPython(name, pythonVersions[name][0])
  if (missing !== undefined) {
    test.skip(`${name} in Python: ${missing}`, () => {})
    continue
  }

  test(`${name} in Python: gets the answer when the first two calls fail, and one clear error when a 529 stays`, async () => {
    const kinds = Object.keys(hiccups)
    const down = 'always a 529'
    const fail = kinds.map((kind) => [kind, failFirst(2, kind, answerHello)] as const)
    const failAlways = failFirst(Number.POSITIVE_INFINITY, 'a 529', answerHello)
    // The question says how the provider fails.
    upstream.handle((call, reply) => {
      const text = JSON.stringify(call.json())
      if (!text.includes(down)) return fail.find(([kind]) => text.includes(kind))?.[1](call, reply)
      return failAlways(call, reply)
    })
    const lines = await runPython(python, programs[name], [...kinds, down])
    expect(lines.slice(0, -1)).toEqual(kinds.flatMap(() => ['hello', 'hello']))
    const error = name === 'google-genai' ? 'ServerError UNAVAILABLE' : 'NotFoundError NOT_FOUND'
    expect(lines.at(-1)).toStartWith(`${error} true `)
    expect(lines.at(-1)).toMatch(/exists, but its provider \w+ is failing \(529 after 3 tries\)/)
    expect(upstream.calls.splice(6 * kinds.length)).toHaveLength(3)
    await expectPaidOnce(2 * kinds.length)
  })
}
