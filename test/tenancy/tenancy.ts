// A gateway with tenants on it, made, funded and limited through its management API as an operator would do it. What is
// asked goes over the wire; nothing here reaches into the app.

import { expect } from 'bun:test'
import { ask as askGateway } from '../parts/ask.ts'
import type { TestEngine } from '../parts/engines.ts'
import { type Gateway, type GatewayOptions, startGateway } from '../parts/gateway.ts'
import { adminToken, type Reply } from '../parts/manage.ts'
import { chat, inWordsOf, messages, type TestSurface } from '../parts/surfaces.ts'

export interface Tenant {
  readonly workspaceId: string
  readonly projectId: string
  readonly keyId: string
  readonly key: string
}

export interface TenantOptions {
  /** Decimal USD; absent = an empty wallet. */
  readonly credit?: string
  /** Allowlist of the project. */
  readonly models?: readonly string[]
  /** Whatever else the key is made with. */
  readonly with?: object
}

export interface Tenancy extends AsyncDisposable {
  readonly gateway: Gateway
  /** undefined = the embedded database. */
  readonly databaseUrl: string | undefined
  /** With the management token unless the headers say otherwise. */
  api(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Reply>
  /** The same, and the body of an answer that must be a good one. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  must(method: string, path: string, body?: unknown): Promise<any>
  /** A workspace with a project and a key. */
  tenant(options?: TenantOptions): Promise<Tenant>
  /** A further key of a project. */
  key(projectId: string, more?: object): Promise<{ readonly id: string; readonly secret: string }>
  generate(surface: TestSurface, key: string, model: string, more?: object): Promise<Reply>
  /** Ids of GET /v1/models, which must be the same in both shapes. */
  models(key: string): Promise<readonly string[]>
}

export interface TenancyOptions extends GatewayOptions {
  /** Absent = the embedded database. */
  readonly engine?: TestEngine
}

export async function startTenancy({ engine, ...options }: TenancyOptions = {}): Promise<Tenancy> {
  const place = await engine?.createPlace()
  const database = place?.url === undefined ? {} : { DATABASE_URL: place.url }
  const gateway = await startGateway({ ...options, env: { ...options.env, ...database } })
  const token = options.env?.TOLLGATE_ADMIN_TOKEN ?? adminToken(gateway.dataFolder)
  const { url } = gateway

  const api: Tenancy['api'] = async (method, path, body, headers = { authorization: `Bearer ${token}` }) => {
    const json = body === undefined ? {} : { 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    return replyOf(await fetch(url + path, { method, headers: { ...json, ...headers }, ...sent }))
  }
  const must: Tenancy['must'] = async (method, path, body) => {
    const reply = await api(method, path, body)
    expect(`${reply.status} ${reply.text}`).toMatch(/^2/)
    return reply.body
  }
  const key: Tenancy['key'] = (projectId, more = {}) =>
    must('POST', `/api/projects/${projectId}/keys`, { name: 'k', ...more })
  return {
    gateway,
    databaseUrl: place?.url,
    api,
    must,
    key,
    async tenant({ credit, models, with: more } = {}) {
      const { id: workspaceId } = await must('POST', '/api/workspaces', { name: 'a tenant' })
      if (credit !== undefined) await must('POST', `/api/workspaces/${workspaceId}/topups`, { amount: credit })
      const project = { name: 'a project', ...(models && { models }) }
      const { id: projectId } = await must('POST', `/api/workspaces/${workspaceId}/projects`, project)
      const { id: keyId, secret } = await key(projectId, more)
      return { workspaceId, projectId, keyId, key: secret }
    },
    generate: async (surface, secret, model, more = {}) => replyOf(await ask(url, surface, secret, model, more)),
    models: (secret) => modelsOf(url, secret),
    async [Symbol.asyncDispose]() {
      await gateway.stop()
      place?.[Symbol.dispose]()
    },
  }
}

/** The answer before it is read, for streams. */
export function ask(url: string, surface: TestSurface, key: string, model: string, more: object = {}) {
  const cap = surface.name === 'messages' ? { max_tokens: 50 } : {}
  const members = inWordsOf(surface, { model, ...cap, messages: [{ role: 'user', content: 'hi' }], ...more })
  return askGateway({ url, key }, surface, members)
}

/** The provider `acme` at an address. `models`: members of each entry beside its id and its route, by name: `acme/large`. */
export function acmeConfig(url: string, models: Readonly<Record<string, string>>, more = ''): string {
  const entries = Object.entries(models).map(
    ([name, members]) => `  - { id: acme/${name}, ${members}, routes: [{ provider: acme, model: ${name[0]} }] }\n`,
  )
  return `providers:
  - { id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: key-of-the-operator }
models:
${entries.join('')}${more}`
}

/** Input costs nothing; 50 tokens of output are $0.00005, and a cap of 100 holds $0.0001. */
export const outputPriced = { large: 'price: { input: "0", output: "1.00" }, max_output_tokens: 1000' }

export async function replyOf(response: Response): Promise<Reply> {
  // A feed has no end; that it was opened is all there is to see.
  const isFeed = response.url.endsWith('/events') && response.ok
  const text = isFeed ? '' : await response.text()
  if (isFeed) await response.body?.cancel()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
}

async function modelsOf(url: string, key: string): Promise<readonly string[]> {
  const authorization = `Bearer ${key}`
  const lists = await Promise.all(
    [chat, messages].map(async ({ headers }) => {
      const response = await fetch(`${url}/v1/models?limit=1000`, { headers: { authorization, ...headers } })
      expect(response.status).toBe(200)
      const { data } = (await response.json()) as { data: { id: string }[] }
      return data.map(({ id }) => id)
    }),
  )
  expect(lists[1]).toEqual(lists[0])
  return lists[0] ?? []
}

/** `error.code` and the message, after the whole shape of the surface was checked. */
export function failureOf(surface: TestSurface, { body, headers }: Reply): readonly [code: string, message: string] {
  const { code, message, details } = body.error
  const shape = surface.name === 'messages' ? ['type', 'error', 'request_id'] : ['error']
  expect(Object.keys(body)).toEqual(shape)
  // Google's code is the status.
  if (surface.name === 'gemini') return [details[0].reason, message]
  if (surface.name === 'messages') expect(body.request_id).toBe(headers.get('x-request-id'))
  return [code, message]
}

/** About a minute and a half: no condition takes that long, and a run that hangs says nothing. */
const triesMax = 20_000

/** Waits for something that happens soon, such as a file being noticed. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    if (tries === triesMax) throw new Error(`never came true: ${isSo}`)
    await Bun.sleep(5)
  }
}
