import { afterAll, expect, test } from 'bun:test'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { Secret } from '../kernel/secret.ts'
import { type ProbedDialects, type ProbeVerdict, probeProvider } from './probe-provider.ts'

let answer = (): Response => new Response('')
const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => answer() })
afterAll(() => server.stop(true))

const dialects = { 'openai-chat': openaiChat } as unknown as ProbedDialects
const baseUrl = `http://127.0.0.1:${server.port}`
const provider = {
  id: 'acme',
  endpoints: [{ dialect: 'openai-chat', baseUrl, auth: 'bearer' }],
  apiKey: new Secret('shh'),
  source: 'a test',
} as const

const said = (message: string, more: object = {}) => ({ error: { message, type: 'invalid_request_error', ...more } })

const rows: readonly [verdict: ProbeVerdict, status: number, body: object | string][] = [
  ['accepted', 400, said('you must provide a model parameter')],
  ['accepted', 404, said('The model `` does not exist', { code: 'model_not_found' })],
  ['wrong address', 404, '<h1>404 Not Found</h1>'],
  ['wrong address', 404, { error: { code: '404', message: 'Resource not found' } }],
  ['wrong address', 404, { detail: 'Not Found' }],
  ['refused', 401, said('no')],
  ['refused', 400, said('Incorrect API key provided: xa***.')],
  ['refused', 400, said('no', { code: 'organization_restricted' })],
  ['out of credit', 400, said('no', { code: 'Arrearage' })],
  ['throttled', 429, said('slow down')],
  ['failing', 503, 'busy'],
]

test.each(rows)('%s: a %p with %j', async (verdict, status, body) => {
  answer = () => new Response(typeof body === 'string' ? body : JSON.stringify(body), { status })
  expect(await probeProvider(provider, dialects)).toMatchObject({ verdict, status })
})
