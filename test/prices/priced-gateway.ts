// A gateway whose models are at one fake provider, with a wallet that suffices, and what tests ask it about prices: over
// the wire, as an operator and as a caller would.

import { expect } from 'bun:test'
import { post } from '../parts/ask.ts'
import type { Reply } from '../parts/manage.ts'
import { chat, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { say, usageIn } from '../parts/upstream-words.ts'
import { startTenancy, type Tenancy, type TenancyOptions, type Tenant } from '../tenancy/tenancy.ts'

/** The provider's usage of every answer. */
export const used = { input: 100, read: 20, write: 10, output: 50 } as const
/** The estimate for a request that is padded to this many bytes: 400 / 4 bytes per token × 1.5. */
export const bodyBytes = 400
export const roughTokens = 150
export const cap = 100

/** Beside the sandbox's models one that has a price in the file and some that have none. */
export const configOf = (url: string): string => `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: key-of-the-operator }
models:
  - { id: acme/rested, routes: [{ provider: acme, model: u }] }
  - { id: acme/filed, price: { input: "1.00", output: "2.00" }, routes: [{ provider: acme, model: f }] }
  - { id: acme/running, routes: [{ provider: acme, model: u }] }
  - { id: acme/opened, routes: [{ provider: acme, model: u }] }
  - { id: acme/moved, routes: [{ provider: acme, model: u }] }
  - { id: acme/raced, routes: [{ provider: acme, model: u }] }
`

export interface PricedGateway extends AsyncDisposable {
  readonly tenancy: Tenancy
  readonly upstream: Upstream
  readonly tenant: Tenant
  put(model: string, price: unknown): Promise<Reply>
  reset(model: string): Promise<Reply>
  read(model: string): Promise<Reply>
  /** A whole answer to a request of `bodyBytes` bytes. */
  generate(model: string, surface?: TestSurface): Promise<Response>
  /** All that tell the price of a model, after one request. */
  everywhere(model: string): Promise<Everywhere>
}

/** Decimal USD, per million tokens where it is a price. */
export interface Everywhere {
  readonly catalog: unknown
  readonly isListed: boolean
  readonly cost: string | null
  readonly held: string
  readonly explained: Readonly<Record<string, string>>
  readonly version: string
}

export interface PricedOptions extends Omit<TenancyOptions, 'config'> {
  config?(upstreamUrl: string): string
}

export async function openPriced({ config = configOf, ...options }: PricedOptions = {}): Promise<PricedGateway> {
  const upstream = startUpstream((call, reply) => say(call, reply, { texts: ['hello'], usage: usageIn('chat', used) }))
  const tenancy = await startTenancy({ ...options, config: config(upstream.url) })
  const tenant = await tenancy.tenant({ credit: '1000' })
  const pathOf = (model: string) => `/api/models/${model}/price`
  const generate: PricedGateway['generate'] = (model, surface = chat) =>
    post({ url: tenancy.gateway.url, key: tenant.key }, surface.path, paddedBody(model), surface.headers)
  return {
    tenancy,
    upstream,
    tenant,
    generate,
    put: (model, price) => tenancy.api('PUT', pathOf(model), price),
    reset: (model) => tenancy.api('DELETE', pathOf(model)),
    read: (model) => tenancy.api('GET', pathOf(model)),
    async everywhere(model) {
      const answer = await generate(model)
      expect([model, answer.status, await answer.text()]).toEqual([model, 200, expect.stringContaining('hello')])
      const { data } = await tenancy.must('GET', '/api/catalog')
      const request = await explained(tenancy, answer.headers.get('x-request-id') ?? '')
      const lines: { kind: string; price_per_million: string }[] = request.charge.lines
      const listed = data.find(({ id }: { id: string }) => id === model)
      expect([model, listed.price_version]).toEqual([model, request.price_version])
      return {
        catalog: listed.price,
        isListed: (await tenancy.models(tenant.key)).includes(model),
        cost: answer.headers.get('x-tollgate-cost'),
        held: request.held,
        explained: Object.fromEntries(lines.map(({ kind, price_per_million: price }) => [kind, price])),
        version: request.price_version,
      }
    },
    async [Symbol.asyncDispose]() {
      await tenancy[Symbol.asyncDispose]()
      upstream.stop()
    },
  }
}

function paddedBody(model: string): string {
  const withContent = (content: string) =>
    JSON.stringify({ model, max_tokens: cap, messages: [{ role: 'user', content }] })
  return withContent('x'.repeat(bodyBytes - withContent('').length))
}

/** The request's line is written soon after its answer. */
export async function explained(tenancy: Tenancy, requestId: string) {
  for (;;) {
    const { status, body } = await tenancy.api('GET', `/api/requests/${requestId}`)
    if (status === 200) return body
    await Bun.sleep(2)
  }
}

/** `"2.5"` USD per million tokens → 2,500,000 pico-dollars per token. */
export function pico(price: string): bigint {
  const [whole = '0', fraction = ''] = price.split('.')
  return BigInt(whole + fraction.padEnd(6, '0'))
}
