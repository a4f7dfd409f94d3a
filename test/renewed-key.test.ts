import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startGateway } from './parts/gateway.ts'
import { startUpstream } from './parts/upstream.ts'
import { chatWords } from './parts/upstream-words.ts'

// An operator puts in a wrong key, sees it refused, and mends it.

const config = (url: string) => `
providers: [{ id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: "file:acme.key" }]
models: [{ id: acme/large, price: { input: "1.00", output: "2.00" }, routes: [{ provider: acme, model: l }] }]
`

test('a refused key that is mended in its file serves the next call, without a restart and without the wait', async () => {
  const upstream = startUpstream((call, reply) =>
    call.headers.get('authorization') === 'Bearer good-key'
      ? reply.send(200, { 'content-type': 'application/json' }, chatWords.whole)
      : reply.json(401, { error: { message: 'Incorrect API key provided', type: 'invalid_request_error' } }),
  )
  const gateway = await startGateway()
  const ask = async () => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'acme/large', messages: [{ role: 'user', content: 'hi' }] }),
    })
    return [response.status, await response.text()] as const
  }
  /** A changed file is in force within a second; a refused key would be left alone for sixty. */
  const until = async (fits: (answer: readonly [number, string]) => boolean) => {
    while (!fits(await ask())) await Bun.sleep(20)
  }
  try {
    const keyFile = join(gateway.configPath, '..', 'acme.key')
    writeFileSync(keyFile, 'wrong-key')
    writeFileSync(gateway.configPath, config(upstream.url))
    // What the operator's key is worth is none of the caller's business.
    await until(([status, text]) => status === 404 && text.includes('acme is unavailable'))
    expect(upstream.calls.length).toBe(1)
    expect((await ask())[0]).toBe(404)
    // Left alone: it was not asked again.
    expect(upstream.calls.length).toBe(1)
    writeFileSync(keyFile, 'good-key')
    await until(([status]) => status === 200)
  } finally {
    await gateway.stop()
    upstream.stop()
  }
})
