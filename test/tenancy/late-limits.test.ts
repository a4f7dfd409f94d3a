// A spend limit that comes when the money is partly spent: an operator who caps a key that runs away caps what it has
// used already, and not a fresh start.

import { expect, test } from 'bun:test'
import { forEachEngine } from '../parts/engines.ts'
import { chat } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { failureOf, startTenancy } from './tenancy.ts'

/** Input costs nothing; 50 tokens of output are $0.00005, and a cap of 100 holds $0.0001. */
const config = (url: string) => `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: key-of-the-operator }
models:
  - { id: acme/large, price: { input: "0", output: "1.00" }, max_output_tokens: 1000, routes: [{ provider: acme, model: l }] }
`

const answer = {
  id: 'c',
  object: 'chat.completion',
  model: 'up',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 50, total_tokens: 53 },
}

forEachEngine((engine) => {
  test('a limit counts what its key, project or workspace was charged before it was set', async () => {
    const upstream = startUpstream((_, reply) => reply.json(200, answer))
    await using tenancy = await startTenancy({ engine, config: config(upstream.url) })
    const { workspaceId, projectId, keyId, key } = await tenancy.tenant({ credit: '1' })
    const call = (secret: string) => tenancy.generate(chat, secret, 'acme/large', { max_tokens: 100 })
    for (let calls = 0; calls < 4; calls++) expect((await call(key)).status).toBe(200)
    const other = await tenancy.key(projectId)
    expect((await call(other.secret)).status).toBe(200)

    // Four calls of the key are $0.0002, all five $0.00025.
    const scopes = [
      [`/api/keys/${keyId}`, '$0.0002 of $0.00025 per month;', 'API keys'],
      [`/api/projects/${projectId}`, '$0.00025 of $0.00025 per month (limit of project', 'Projects & limits'],
      [`/api/workspaces/${workspaceId}`, '$0.00025 of $0.00025 per month (limit of workspace', 'Projects & limits'],
    ] as const
    for (const [path, used, page] of scopes) {
      await tenancy.must('PUT', `${path}/limits`, { spend_per_month: '0.00025' })
      const refused = await call(key)
      expect([path, refused.status]).toEqual([path, 429])
      const message = failureOf(chat, refused)[1]
      expect(message).toContain(used)
      expect(message).toContain(`Raise the limit: console → ${page}, or`)
      const { spend } = await tenancy.must('GET', path)
      expect(spend).toMatchObject([{ period: 'month', limit: '0.00025', spent: used.slice(1, used.indexOf(' ')) }])
      const [{ starts_at, resets_at }] = spend
      expect([starts_at, resets_at].map((at: string) => at.slice(7))).toEqual(Array(2).fill('-01T00:00:00.000Z'))
      await tenancy.must('PUT', `${path}/limits`, {})
    }
    // A limit that starts later applies later.
    const later = { spend_per_month: '0.00025', starts_at: '2999-01-15' }
    expect(await tenancy.must('PUT', `/api/keys/${keyId}/limits`, later)).toEqual(later)
    expect((await call(key)).status).toBe(200)
    const times = { starts_at: '2999-01-15T00:00:00.000Z', resets_at: '2999-02-01T00:00:00.000Z' }
    const state = { period: 'month', limit: '0.00025', spent: '0.00', ...times }
    expect((await tenancy.must('GET', `/api/keys/${keyId}`)).spend).toEqual([state])
    const alone = await tenancy.api('PUT', `/api/keys/${keyId}/limits`, { starts_at: '2999-01-15' })
    expect([alone.status, alone.body.error.param]).toEqual([400, 'starts_at'])
    upstream.stop()
  })
})
