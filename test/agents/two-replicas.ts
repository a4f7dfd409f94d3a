// Two gateways on one database, and a provider of each dialect with two routes behind them.

import type { DialectName } from '../conformance/cells.ts'
import { type Gateway, startGateway, upstreamProviders } from '../parts/gateway.ts'
import { sharedPostgres } from '../parts/postgres.ts'
import type { UpstreamCall } from '../parts/upstream.ts'

const models: Readonly<Record<DialectName, string>> = {
  chat: 'gpt-5.6',
  messages: 'claude-opus-4-8',
  gemini: 'gemini-3.8-flash',
  responses: 'gpt-5.7',
}
/** The model `test/DIALECT` is at a provider of each. */
export const dialects = Object.keys(models) as DialectName[]
export const routes = ['east', 'west']

function configFor(url: string): string {
  const providers = dialects.flatMap((dialect) =>
    routes.map((route) => {
      const key = dialect === 'chat' ? ', prompt_cache_key: true' : ''
      const { dialect: id, path } = upstreamProviders[dialect]
      return `  - { id: ${dialect}-${route}, dialect: ${id}, base_url: "${url}/${route}${path}", api_key: k${key} }`
    }),
  )
  const entries = dialects.map((dialect) => {
    const each = routes.map((route) => `{ provider: ${dialect}-${route}, model: ${models[dialect]} }`)
    return `  - { id: test/${dialect}, price: free, max_output_tokens: 8000, routes: [${each.join(', ')}] }`
  })
  return `providers:\n${providers.join('\n')}\nmodels:\n${entries.join('\n')}\n`
}

export async function startReplicas(upstreamUrl: string, redisUrl?: string): Promise<readonly [Gateway, Gateway]> {
  const env = {
    DATABASE_URL: await (await sharedPostgres()).createDatabase(),
    TOLLGATE_SECRET: Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64'),
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
  }
  const config = configFor(upstreamUrl)
  return [await startGateway({ config, env }), await startGateway({ config, env })]
}

export const routeOf = ({ path }: UpstreamCall) => path.split('/')[1] ?? ''
