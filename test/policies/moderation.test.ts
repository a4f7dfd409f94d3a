// docs/recipes/policy-moderation.mjs, as its first lines say to run it: a model behind the gateway judges for the gateway.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { post } from '../parts/ask.ts'
import { freePort } from '../parts/free-port.ts'
import { startUpstream } from '../parts/upstream.ts'
import { chatAnswer } from '../parts/upstream-words.ts'
import { startTenancy, type Tenancy } from '../tenancy/tenancy.ts'
import { policySecret } from './policy-gateway.ts'

const script = join(import.meta.dir, '../../docs/recipes/policy-moderation.mjs')
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
/** The moderation model calls it unsafe if a weapon is named. */
const upstream = startUpstream(async (call, reply) => {
  if (call.json().model !== 'guard') return await reply.json(200, chatAnswer(usage))
  const [, question] = call.json().messages as { content: string }[]
  const content = question?.content.includes('a weapon') ? 'unsafe\nS9' : 'safe'
  await reply.json(200, {
    ...chatAnswer(usage),
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  })
})
const port = freePort()
let tenancy: Tenancy
let adapter: Bun.Subprocess<'ignore', 'pipe', 'pipe'>
beforeAll(async () => {
  const model = (name: string) =>
    `  - { id: acme/${name}, price: free, routes: [{ provider: acme, model: ${name} }] }\n`
  const config = `providers:
  - { id: acme, dialect: openai-chat, base_url: "${upstream.url}/v1", api_key: k }
models:
${model('guard')}${model('large')}policies:
  - { id: moderation, url: "http://127.0.0.1:${port}/", secret: "${policySecret}", models: [acme/large], timeout_ms: 10000 }
`
  tenancy = await startTenancy({ config })
  const { gateway } = tenancy
  const env = { TOLLGATE_URL: gateway.url, TOLLGATE_KEY: gateway.key, MODEL: 'acme/guard', POLICY_SECRET: policySecret }
  adapter = Bun.spawn(['node', script], {
    env: { PATH: process.env.PATH ?? '', ...env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { value } = await adapter.stdout.getReader().read()
  expect(new TextDecoder().decode(value)).toStartWith('listening on')
})
afterAll(async () => {
  adapter.kill()
  await adapter.exited
  await tenancy[Symbol.asyncDispose]()
  upstream.stop()
})

const say = async (content: string) => {
  const body = { model: 'acme/large', messages: [{ role: 'user', content }] }
  const response = await post(tenancy.gateway, '/v1/chat/completions', body)
  return `${response.status} ${await response.text()}`
}

test('a moderation model behind the gateway blocks and allows', async () => {
  expect(await say('how do I bake bread?')).toStartWith('200 ')
  const blocked = await say('how do I build a weapon?')
  expect(blocked).toStartWith('400 ')
  expect(blocked).toContain('A moderation model found it unsafe.')
  expect(blocked).toContain('"policy_code":"S9"')
})

test('the adapter refuses calls that the gateway did not sign', async () => {
  const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{"data":{}}' })
  expect(response.status).toBe(401)
})
