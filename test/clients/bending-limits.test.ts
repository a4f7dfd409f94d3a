// The official clients at a spend limit that bends: another model answers, or a call waits because requests are slowed down.
// Nothing is set up for it in the programs: the call ends, and what happened is in the answer, its headers and the log. An
// answer costs $0.00005 and holds $0.0001; one of 1,000 tokens costs and holds $0.001.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { stopAll } from '../parts/gateway.ts'
import { createChatClient, createMessageClient } from '../parts/official-clients.ts'
import { chat } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerWith } from '../parts/upstream-words.ts'
import { fetchPython, pythonVersions } from '../recipes/python.ts'
import { acmeConfig, ask, outputPriced, startTenancy, type Tenancy, type Tenant, until } from '../tenancy/tenancy.ts'

const usual = answerWith({ input: 3, output: 50 })
const upstream = startUpstream(usual)
let tenancy: Tenancy

beforeAll(async () => {
  const small = 'price: { input: "0", output: "0.10" }, max_output_tokens: 1000'
  tenancy = await startTenancy({ config: acmeConfig(upstream.url, { ...outputPriced, small }) })
})
afterAll(() => stopAll(tenancy, upstream))

/** What a program sees of its call: the model that answered, and the header with warnings. */
type Seen = readonly [model: string, warnings: string | null]
type Call = (key: string) => Promise<Seen>

const asked = { model: 'acme/large', max_tokens: 100, messages: [{ role: 'user' as const, content: 'hi' }] }

async function seenBy(call: { withResponse(): Promise<{ data: { model: string }; response: Response }> }) {
  const { data, response } = await call.withResponse()
  return [data.model, response.headers.get('x-tollgate-warnings')] as const
}

const inJavaScript: Readonly<Record<string, Call>> = {
  openai: (apiKey) => {
    const client = createChatClient('openai 7', { baseURL: `${tenancy.gateway.url}/v1`, apiKey, maxRetries: 2 })
    return seenBy(client.chat.completions.create(asked))
  },
  anthropic: (apiKey) => {
    const client = createMessageClient('anthropic 1', { baseURL: tenancy.gateway.url, apiKey, maxRetries: 2 })
    return seenBy(client.messages.create(asked))
  },
}

const programs = {
  openai:
    'from openai import OpenAI; calls = OpenAI(base_url=sys.argv[1] + "/v1", api_key=sys.argv[2]).chat.completions',
  anthropic: 'from anthropic import Anthropic; calls = Anthropic(base_url=sys.argv[1], api_key=sys.argv[2]).messages',
} as const

async function inPython(python: string, name: keyof typeof programs, key: string): Promise<Seen> {
  const program = `import json, sys
${programs[name]}
reply = calls.with_raw_response.create(**json.loads(sys.argv[3]))
print(json.dumps([reply.parse().model, reply.headers.get("x-tollgate-warnings")]))`
  const command = [python, '-c', program, tenancy.gateway.url, key, JSON.stringify(asked)]
  const child = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'pipe'] })
  const [out, err, exit] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect([exit, err]).toEqual([0, ''])
  return JSON.parse(out)
}

const setLimit = ({ projectId }: Tenant, limit: object) =>
  tenancy.must('PUT', `/api/projects/${projectId}/limits`, { spend_limits: [{ window: 'day', ...limit }] })

/** Newest first, once there are at least so many. */
async function logOf({ keyId }: Tenant, count: number) {
  const read = () => tenancy.must('GET', `/api/requests?key_id=${keyId}&limit=200`)
  await until(async () => (await read()).data.length >= count)
  return (await read()).data
}

function testClient(name: string, call: Call): void {
  test(`${name}: another model answers once the limit has no room`, async () => {
    const tenant = await tenancy.tenant({ credit: '1' })
    await setLimit(tenant, { models: '!acme/small', limit: '0.00009', then: 'acme/small' })
    expect(await call(tenant.key)).toEqual(['acme/small', 'model_by_spend_limit=acme/small;field=/model'])
    const [request, ...others] = await logOf(tenant, 1)
    expect(others).toEqual([])
    expect(request).toMatchObject({ status: 200, model: 'acme/small', requested_model: 'acme/large' })
    expect(request.warnings).toEqual(['model_by_spend_limit=acme/small /model'])
  })

  test(`${name}: a call that is slowed down waits and is answered`, async () => {
    const tenant = await tenancy.tenant({ credit: '1' })
    await setLimit(tenant, { limit: '0.01', slow_down: 12 })
    const large = { max_tokens: 1000 }
    upstream.handle(answerWith({ input: 3, output: 1000 }))
    for (let calls = 0; calls < 8; calls++) {
      const { status } = await ask(tenancy.gateway.url, chat, tenant.key, 'acme/large', large)
      expect(status).toBe(200)
    }
    upstream.handle(usual)
    const isTold = async () => (await logOf(tenant, 8)).some(isRefusedClient)
    const askOnce = async () =>
      (await ask(tenancy.gateway.url, chat, tenant.key, 'acme/large', { max_tokens: 100 })).status
    // Other calls use up what is admitted per minute until one of the client's has been told to wait.
    while (!(await isTold())) {
      while ((await askOnce()) !== 429);
      let isOver = false
      const ended = call(tenant.key).finally(() => (isOver = true))
      while (!isOver && !(await isTold())) await askOnce()
      expect(await ended).toEqual(['acme/large', 'slowed_by_spend_limit=12_per_minute;field='])
    }
  })
}

const isRefusedClient = ({ status, client }: { status: number; client: string | null }) =>
  status === 429 && /openai|anthropic/i.test(client ?? '')

for (const [name, call] of Object.entries(inJavaScript)) testClient(`${name} in JavaScript`, call)
for (const name of ['openai', 'anthropic'] as const) {
  const { python, missing } = await fetchPython(name, pythonVersions[name][0])
  if (missing !== undefined) test.skip(`${name} in Python: ${missing}`, () => {})
  else testClient(`${name} in Python`, (key) => inPython(python, name, key))
}
