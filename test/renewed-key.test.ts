import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { post } from './parts/ask.ts'
import { startGateway } from './parts/gateway.ts'
import { chat } from './parts/surfaces.ts'
import { startUpstream } from './parts/upstream.ts'
import { chatWords } from './parts/upstream-words.ts'

// An operator puts in a wrong key, sees it refused, and mends it.

const config = (url: string) => `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: "file:acme.key" }
  - { id: spare, dialect: openai-chat, base_url: "${url}/v1", api_key: spare-key }
models:
  - id: acme/large
    price: { input: "1.00", output: "2.00" }
    routes: [{ provider: acme, model: l, priority: 1 }, { provider: spare, model: l, priority: 2 }]
  - { id: acme/only, price: { input: "1.00", output: "2.00" }, routes: [{ provider: acme, model: o }] }
`

test('a refused key that is mended in its file serves the next call, without a restart and without the wait', async () => {
  const keys: string[] = []
  const upstream = startUpstream((call, reply) => {
    const key = call.headers.get('authorization')?.replace('Bearer ', '') ?? ''
    keys.push(key)
    return key === 'wrong-key'
      ? reply.json(401, { error: { message: 'Incorrect API key provided', type: 'invalid_request_error' } })
      : reply.send(200, { 'content-type': 'application/json' }, chatWords.whole)
  })
  const gateway = await startGateway()
  const ask = async (model = 'acme/large') => {
    const response = await post(gateway, chat.path, { model, messages: [{ role: 'user', content: 'hi' }] })
    return [response.status, await response.text()] as const
  }
  try {
    const keyFile = join(gateway.configPath, '..', 'acme.key')
    writeFileSync(keyFile, 'wrong-key')
    writeFileSync(gateway.configPath, config(upstream.url))
    // A changed file is in force within a second.
    while ((await ask())[0] !== 200) await Bun.sleep(20)
    expect(keys).toEqual(['wrong-key', 'spare-key'])
    // Left alone for a minute, where another route serves; where none does it is tried again, and the caller learns why.
    await ask()
    expect(keys.slice(2)).toEqual(['spare-key'])
    const [status, text] = await ask('acme/only')
    expect([status, text]).toEqual([404, expect.stringContaining("acme rejected the gateway's credential")])
    expect(keys.slice(3)).toEqual(['wrong-key'])
    writeFileSync(keyFile, 'good-key')
    while (!keys.includes('good-key')) {
      expect((await ask())[0]).toBe(200)
      await Bun.sleep(20)
    }
    expect(keys.filter((key) => key === 'wrong-key')).toHaveLength(2)
  } finally {
    await gateway.stop()
    upstream.stop()
  }
})
