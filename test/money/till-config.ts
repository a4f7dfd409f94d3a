// The configuration of a till: priced models in each dialect, each at separate providers.

import type { Clock } from '../../src/kernel/clock.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import type { Upstream } from '../parts/upstream.ts'

/** Per token: 350 nano-dollars in, 2.8 read, 437.5 written, 700 written for an hour, 1,050 out; twice or so beyond 1,000. */
const usualPrice = `{ input: "0.35", output: "1.05", cache_read: "0.0028", cache_write: "0.4375", cache_write_1h: "0.70",
      over: { "1000": { input: "0.70", output: "1.575", cache_read: "0.0056", cache_write: "0.875", cache_write_1h: "1.40" } } }`

export interface TillOptions {
  /** YAML of a price, as in the configuration file. */
  readonly price?: string
  /** More members of all models. */
  readonly more?: string
  /** More members of the only route. */
  readonly route?: string
  /** YAML of the section of the configuration file. */
  readonly server?: string
  /** The same. */
  readonly retries?: string
  readonly clock?: Clock
  /** The ledger as the gateway shall see it. */
  wrapLedger?(real: Ledger): Ledger
  /** A second provider of each dialect, asked when the first one fails. */
  readonly spare?: Upstream
  /** How many models of each dialect there are, each at a separate provider; 1 unless tests are about failures. */
  readonly models?: number
}

const dialects = {
  chat: 'openai-chat',
  messages: 'anthropic-messages',
  responses: 'openai-responses',
  gemini: 'gemini',
}

/** Provider `chat-3-1` is the second one of model `till/chat-3`. */
export function tillConfig(
  url: string,
  { price = usualPrice, more = '', route = '', server, retries, spare, models = 1 }: TillOptions,
): string {
  const providers: string[] = []
  const entries: string[] = []
  for (const [name, dialect] of Object.entries(dialects)) {
    for (let model = 0; model < models; model++) {
      const routes = [url, ...(spare ? [spare.url] : [])].map((base, at) => {
        const id = `${name}-${model}-${at}`
        const baseUrl = name === 'messages' ? base : `${base}/v1`
        providers.push(`  - { id: ${id}, dialect: ${dialect}, base_url: "${baseUrl}", api_key: upstream-secret }`)
        return `{ provider: ${id}, model: up, priority: ${at}${route === '' ? '' : `, ${route}`} }`
      })
      const size = more.includes('context_tokens') ? '' : 'context_tokens: 100000, '
      const extra = more === '' ? '' : `${more}, `
      entries.push(`  - { id: till/${name}-${model}, price: ${price}, ${size}${extra}routes: [${routes.join(', ')}] }`)
    }
  }
  const sections = Object.entries({ server, retries }).flatMap(([name, yaml]) => (yaml ? `${name}: ${yaml}\n` : []))
  return `${sections.join('')}providers:\n${providers.join('\n')}\nmodels:\n${entries.join('\n')}\n`
}
