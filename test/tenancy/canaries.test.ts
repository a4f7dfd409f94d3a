// Secrets and prompts that are unique, put wherever one can be, followed by every kind of request
// and failure: afterwards none of them is in what the gateway wrote down or answered.

import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { stopAll } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import type { Reply } from '../parts/manage.ts'
import { addressed, allSurfaces, chat, inWordsOf, messages, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type UpstreamCall, type UpstreamReply } from '../parts/upstream.ts'
import { chatWords, wordsFor } from '../parts/upstream-words.ts'
import { ask, startTenancy, until } from './tenancy.ts'

const masterSecretBytes = 'canary-master-secret-of-48-bytes-0123456789abcde'

/** Shaped like what they stand for: a mask that only knows shapes must catch them, too. */
const secrets = {
  'management token': 'tgm-canary0operator0token0123456789',
  'master secret': Buffer.from(masterSecretBytes).toString('base64'),
  'bytes of the master secret': masterSecretBytes,
  'stripe key': 'sk_test_canary0stripe0key0123456789',
  'stripe webhook secret': 'whsec_canary0webhook0secret0123456789',
  'provider key': 'sk-canary0provider0key0123456789abcdef',
  'own credential': 'sk-canary0own0credential0123456789abcdef',
  'console cookie': 'canary0session0cookie0123456789',
  prompt: 'canary prompt: the combination is 7-33-9',
  answer: 'canary answer: tell nobody about 7-33-9',
}

/** A provider is left alone after a fault, and every behaviour has to reach it: so long passes before each ask. */
const calmSeconds = 4 * 60 * 60
/** As long as there is; all the asks are within it. */
const overlapSeconds = 30 * 24 * 60 * 60
const clock = createJumpClock()
/** Everything that was answered, headers included, but for the answers that make a key and show it. */
const answered: string[] = []

const config = (url: string) => `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: ${secrets['provider key']} }
  - { id: calm, dialect: openai-chat, base_url: "${url}/v1", api_key: ${secrets['provider key']} }
  - { id: messy, dialect: anthropic-messages, base_url: "${url}", api_key: ${secrets['provider key']} }
models:
  - { id: acme/large, price: { input: "1.00", output: "2.00" }, max_output_tokens: 1000, routes: [{ provider: acme, model: l }] }
  - { id: acme/two, price: { input: "1.00", output: "2.00" }, max_output_tokens: 1000, routes: [{ provider: messy, model: m }] }
  - { id: calm/one, price: free, routes: [{ provider: calm, model: c }] }
own_keys: { base_urls: true, allow_hosts: ["127.0.0.1"] }
`

const upstream = startUpstream(() => {})
const tenancy = await startTenancy({
  config: config(upstream.url),
  clock,
  env: {
    TOLLGATE_ADMIN_TOKEN: secrets['management token'],
    TOLLGATE_SECRET: secrets['master secret'],
    STRIPE_SECRET_KEY: secrets['stripe key'],
    STRIPE_WEBHOOK_SECRET: secrets['stripe webhook secret'],
  },
})

afterAll(() => stopAll(tenancy, upstream))

function note(reply: Reply): Reply {
  answered.push(`${reply.status} ${JSON.stringify([...reply.headers])} ${reply.text}`)
  return reply
}

const prompted = { messages: [{ role: 'user', content: secrets.prompt }] }

const complaintWords = 'Incorrect API key provided'

/** Messages of providers about a wrong key. */
function complaint({ headers }: UpstreamCall): object {
  const message = `${complaintWords}: ${headers.get('authorization') ?? headers.get('x-api-key')}`
  return { type: 'error', error: { message, type: 'invalid_request_error', code: 'invalid_api_key' } }
}

const saying = (words: string, text: string) => words.replace('hello', text)

/**
 * Resolves when the caller has read a word: what fails after that can no longer become another answer. At once for a caller that
 * asked for the whole, which has no words before its end.
 */
let answerSeen = Promise.withResolvers<void>()

/** The beginning of a stream that comes to no good end. */
async function begin(call: UpstreamCall, reply: UpstreamReply, text: string): Promise<void> {
  const words = wordsFor(call)
  await reply.startStream()
  await reply.chunk(words.opening + words.says(text))
  await answerSeen.promise
}

const behaviours: Readonly<Record<string, (call: UpstreamCall, reply: UpstreamReply) => void | Promise<void>>> = {
  answers: (call, reply) =>
    reply.send(200, { 'content-type': 'application/json' }, saying(wordsFor(call).whole, secrets.answer)),
  async streams(call, reply) {
    const words = wordsFor(call)
    await reply.startStream({ 'set-cookie': 'a=canary0session0cookie0123456789', 'x-account': secrets['provider key'] })
    await reply.chunk(words.opening + words.says(secrets.answer) + words.ending)
    await reply.finish()
  },
  async 'breaks off'(call, reply) {
    await begin(call, reply, secrets.answer)
    reply.reset()
  },
  async 'sends an error in the stream'(call, reply) {
    await begin(call, reply, secrets.answer)
    await reply.chunk(`event: error\ndata: ${JSON.stringify(complaint(call))}\n\n`)
    await reply.finish()
  },
  'answers nonsense': (call, reply) =>
    reply.send(200, { 'content-type': 'text/html' }, JSON.stringify(complaint(call))),
  'hangs up': (_, reply) => reply.reset(),
  ...Object.fromEntries(
    [401, 402, 403, 404, 429, 500, 503].map((status) => [
      `refuses with ${status}`,
      (call: UpstreamCall, reply: UpstreamReply) => reply.json(status, complaint(call), { 'retry-after': '60' }),
    ]),
  ),
}

/** Which callers get the answer or part of it: true = streamed, false = whole. */
const answeredWhenStreamed: Readonly<Record<string, boolean>> = {
  answers: false,
  streams: true,
  'breaks off': true,
  'sends an error in the stream': true,
}
const anyAnswer = expect.stringContaining(secrets.answer)

interface Ask {
  readonly surface: TestSurface
  readonly key: string
  readonly stream: boolean
}

/** Every behaviour on all surfaces and both providers, streamed or not, with the keys in turn: they expire within weeks. */
async function runEverything(keys: readonly string[]): Promise<void> {
  const kinds = allSurfaces.flatMap((surface) => [false, true].map((stream) => ({ surface, stream })))
  for (const [turn, [name, behave]] of Object.entries(behaviours).entries()) {
    upstream.handle(behave)
    for (const [at, kind] of kinds.entries()) {
      const one: Ask = { ...kind, key: keys[(turn + at) % keys.length] as string }
      clock.jump(calmSeconds)
      const before = upstream.calls.length
      const reply = await answerTo(one)
      const label = `${name}, ${one.surface.name}${one.stream ? ', streamed' : ''}`
      // A provider that was never called, or an answer whose words never came, would prove nothing.
      expect([label, upstream.calls.length > before]).toEqual([label, true])
      if (answeredWhenStreamed[name] === one.stream) expect([label, reply.text]).toEqual([label, anyAnswer])
      expect([label, reply.text.includes(complaintWords)]).toEqual([label, false])
      // Only the caller gets the answer.
      note({ ...reply, text: reply.text.replaceAll(secrets.answer, '') })
    }
  }
}

/** All that came, also of a stream that broke off. */
async function answerTo({ surface, key, stream }: Ask): Promise<Reply> {
  answerSeen = Promise.withResolvers<void>()
  if (!stream) answerSeen.resolve()
  const model = stream ? 'acme/large' : 'acme/two'
  const response = await ask(tenancy.gateway.url, surface, key, model, { ...prompted, stream, max_tokens: 20 })
  const { status, headers } = response
  const decoder = new TextDecoder()
  let text = ''
  const reader = response.body?.getReader()
  for (;;) {
    // A stream that breaks off may end the connection.
    const part = await reader?.read().catch(() => undefined)
    if (!part?.value) return { status, headers, text, body: undefined }
    text += decoder.decode(part.value, { stream: true })
    if (text.includes(secrets.answer)) answerSeen.resolve()
  }
}

async function askWrongly(key: string): Promise<void> {
  const cookie = `session=${secrets['console cookie']}`
  for (const surface of allSurfaces) {
    note(await tenancy.generate(surface, key, 'no/such', prompted))
    note(await tenancy.generate(surface, `${key}x`, 'acme/large', prompted))
    note(await tenancy.generate(surface, secrets['management token'], 'acme/large', prompted))
    note(await tenancy.generate(surface, key, 'acme/large', { messages: secrets.prompt }))
    const headers = { 'x-api-key': key, cookie, ...surface.headers }
    const members = inWordsOf(surface, { model: 'acme/large', max_tokens: -1, ...prompted })
    const { path, body } = addressed(surface, JSON.stringify(members))
    note(await tenancy.api('POST', path, JSON.parse(body), headers))
    note(await tenancy.api('POST', path, undefined, { ...headers, 'content-type': 'application/json' }))
  }
  note(await tenancy.api('GET', '/api/keys', undefined, { authorization: `Bearer ${key}`, cookie }))
  note(await tenancy.api('POST', '/api/payments/stripe/webhook', {}, { 'stripe-signature': secrets['stripe key'] }))
}

async function manage(workspaceId: string, keyId: string): Promise<void> {
  const credential = `/api/workspaces/${workspaceId}/credentials/acme`
  const own = { api_key: secrets['own credential'] }
  note(await tenancy.api('PUT', credential, own))
  note(await tenancy.api('PUT', credential, { api_key: `${secrets['own credential']} ` }))
  note(await tenancy.api('PUT', credential, { ...own, base_url: `http://${secrets['own credential']}@127.0.0.1` }))
  note(await tenancy.api('PUT', `/api/workspaces/${workspaceId}/credentials/nobody`, own))
  note(await tenancy.api('POST', `/api/workspaces/${workspaceId}/checkouts`, { amount: '0.001' }))
  const reading = ['/api/workspaces', '/api/keys', '/api/requests', '/api/audit', '/api/catalog', '/api/openapi.json']
  const things = ['', '/wallet', '/transfers', '/projects', '/credentials', '/credentials/acme']
  for (const path of [...reading, ...things.map((thing) => `/api/workspaces/${workspaceId}${thing}`)]) {
    note(await tenancy.api('GET', path))
  }
  note(await tenancy.api('GET', `/api/keys/${keyId}`))
  const { data } = await tenancy.must('GET', '/api/requests?limit=200')
  for (const { id } of data as { id: string }[]) note(await tenancy.api('GET', `/api/requests/${id}`))
}

/** All tables as text, and the bytes of the files: what was deleted may still lie in a page. */
function databaseText(): string {
  const { dataFolder } = tenancy.gateway
  const files = readdirSync(dataFolder).filter((name) => name !== 'first-key')
  const bytes = files.map((name) => readFileSync(join(dataFolder, name)).toString('latin1'))
  const name = files.find((each) => /\.(db|sqlite3?)$/.test(each)) ?? ''
  const database = new Database(join(dataFolder, name), { readonly: true })
  const tables = database.query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'").all()
  expect(tables.length).toBeGreaterThan(8)
  const rows = tables.map((table) => JSON.stringify(database.query(`SELECT * FROM "${table.name}"`).all(), readable))
  database.close()
  return [...rows, ...bytes].join('\n')
}

function readable(_name: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1')
  return typeof value === 'bigint' ? String(value) : value
}

test('L1, L2, K4: no secret and no prompt is in logs, database, answers or records', async () => {
  const { projectId, keyId, key } = await tenancy.tenant({ credit: '5' })
  const path = `/api/projects/${projectId}/keys`
  const token = { authorization: `Bearer ${secrets['management token']}` }
  // Its answer is kept for a retry, and holds the secret.
  const kept = await tenancy.api('POST', path, { name: 'kept' }, { ...token, 'idempotency-key': 'once' })
  const replayed = await tenancy.api('POST', path, { name: 'kept' }, { ...token, 'idempotency-key': 'once' })
  expect(replayed.body.secret).toBe(kept.body.secret)
  const rotated = await tenancy.must('POST', `/api/keys/${keyId}/rotate`, { overlap_seconds: overlapSeconds })
  const owner = await tenancy.tenant({ credit: '5' })
  const ownCredential = { api_key: secrets['own credential'], base_url: `${upstream.url}/v1` }
  await tenancy.must('PUT', `/api/workspaces/${owner.workspaceId}/credentials/acme`, ownCredential)

  await runEverything([key, rotated.secret, owner.key])
  await askWrongly(key)
  // Records are written in order: when the last one is there, all are.
  const last = await tenancy.generate(chat, key, 'no/such', prompted)
  await until(
    async () => (await tenancy.api('GET', `/api/requests/${last.headers.get('x-request-id')}`)).status === 200,
  )
  await manage(owner.workspaceId, keyId)
  await tenancy.must('POST', `/api/keys/${keyId}/revoke`)
  note(await tenancy.generate(chat, key, 'acme/large', prompted))
  note(await tenancy.generate(messages, key, 'acme/large', prompted))
  const keysSeen = new Set(upstream.calls.map(({ headers }) => headers.get('authorization')))
  expect(keysSeen).toContain(`Bearer ${secrets['provider key']}`)
  expect(keysSeen).toContain(`Bearer ${secrets['own credential']}`)

  const apiKeys = { 'first key': tenancy.gateway.key, key, kept: kept.body.secret, rotated: rotated.secret }
  const places = {
    logs: JSON.stringify(tenancy.gateway.logged()),
    database: databaseText(),
    answers: answered.join('\n'),
  }
  for (const [place, text] of Object.entries(places)) {
    expect([place, text.length > 1000]).toEqual([place, true])
    for (const [what, canary] of Object.entries({ ...secrets, ...apiKeys })) {
      expect([place, what, contextOf(text, canary)]).toEqual([place, what, undefined])
    }
  }
})

// A provider's message about a bad request is passed on, and kept as the reason that the caller was given.
test('L2: a prompt that a provider quotes in an error is not stored', async () => {
  const { key } = await tenancy.tenant({ credit: '5' })
  const message = `Invalid content: ${secrets.prompt}`
  upstream.handle((_, reply) => reply.json(400, { error: { message, type: 'invalid_request_error' } }))
  const { status, headers } = await tenancy.generate(chat, key, 'calm/one', prompted)
  expect(status).toBe(400)
  const path = `/api/requests/${headers.get('x-request-id')}`
  await until(async () => (await tenancy.api('GET', path)).status === 200)
  expect((await tenancy.api('GET', path)).text).not.toContain(secrets.prompt)
  expect(JSON.stringify(tenancy.gateway.logged())).not.toContain(secrets.prompt)
})

test('A8: a key that is sent as the model is neither repeated nor stored', async () => {
  const { key } = await tenancy.tenant({ credit: '5' })
  for (const surface of allSurfaces) {
    const { status, text } = await tenancy.generate(surface, key, key)
    expect([status, text.includes(key)]).toEqual([404, false])
  }
  expect(JSON.stringify(tenancy.gateway.logged())).not.toContain(key)
})

/** Some of the surroundings, so that a failure says where it was; undefined = it is not there. */
function contextOf(text: string, canary: string): string | undefined {
  const found = text.indexOf(canary)
  return found === -1 ? undefined : text.slice(Math.max(0, found - 200), found + 200)
}

test('L3: a provider’s message reaches the caller only for the caller’s own errors, and without keys', async () => {
  const { key } = await tenancy.tenant({ credit: '5' })
  // With a code or another message it would be about our key, and nothing of it for the caller.
  const refusal = 'No such setting beside'
  upstream.handle(({ headers }, reply) => {
    const sent = headers.get('authorization') ?? headers.get('x-api-key')
    return reply.json(400, { detail: `${refusal} ${sent}` })
  })
  for (const surface of allSurfaces) {
    const { status, text } = await tenancy.generate(surface, key, 'calm/one')
    expect(status).toBe(400)
    expect(text).toContain(refusal)
    expect(text).not.toContain(secrets['provider key'])
  }
  upstream.handle((_, reply) => reply.send(200, { 'content-type': 'application/json' }, chatWords.whole))
})
