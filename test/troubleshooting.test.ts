// The messages that docs/troubleshooting.md quotes are those of the gateway.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Gateway, startGateway } from './parts/gateway.ts'
import { adminToken } from './parts/manage.ts'

const page = await Bun.file(join(import.meta.dir, '../docs/troubleshooting.md')).text()
const config = `
providers:
  - { id: acme, base_url: "http://127.0.0.1:9/v1", dialect: openai-chat, api_key: not-a-key }
models:
  - id: acme/unpriced
    routes: [{ provider: acme, model: unpriced }]
  - id: acme/away
    price: { input: "1", output: "1" }
    routes: [{ provider: acme, model: away }]
retries: { attempts: 1 }
`

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({ config })
})
afterAll(() => gateway.stop())

interface Case {
  /** As on the page. */
  readonly quoted: string
  readonly model?: string
  readonly path?: string
  /** Of the header `Authorization`; by default a key that works. */
  authorization?(): string
}

test.each<Case>([
  { quoted: 'Tollgate needs an API key', authorization: () => '' },
  { quoted: 'no `Bearer` before the key', authorization: () => gateway.key },
  { quoted: 'it has the form of a management token', authorization: () => `Bearer ${adminToken(gateway.dataFolder)}` },
  { quoted: 'it is not a Tollgate key', authorization: () => 'Bearer sk-proj-1234' },
  { quoted: 'No model', model: 'acme/misspelled' },
  { quoted: 'is off: this gateway has no key for', model: 'openai/gpt-5.6' },
  { quoted: 'has no price, so it cannot be called', model: 'acme/unpriced' },
  { quoted: 'exists, but its provider', model: 'acme/away' },
  { quoted: 'Did you mean', path: '/v1/chat/completion' },
  { quoted: 'Served paths', path: '/v1/nothing/like/it' },
])('$quoted', async ({ quoted, model = 'sandbox/echo', path = '/v1/chat/completions', authorization }) => {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: authorization?.() ?? `Bearer ${gateway.key}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  })
  const { error } = (await response.json()) as { error: { message: string } }
  expect(error.message).toContain(quoted)
  expect(page).toContain(quoted)
})
