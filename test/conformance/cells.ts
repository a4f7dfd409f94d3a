// The gateway with a provider of each dialect behind it, and the pairs of surface and provider that everything is tried
// on. Two models stand for each direction that translates: what a model takes decides what can be carried.

import type { ContentTags } from '../../src/dialects/canonical/translation.ts'
import { ask } from '../parts/ask.ts'
import { contentTagsOf, tagged } from '../parts/content-tags.ts'
import { type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { chat, gemini, messages, responses, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamHandler } from '../parts/upstream.ts'
import { isGeminiPath } from '../parts/upstream-words.ts'

/** The dialects of callers. */
export type SurfaceName = TestSurface['name']
/** The dialects of providers. */
export type DialectName = SurfaceName

export interface Pair {
  readonly surface: SurfaceName
  /** The provider's dialect. */
  readonly upstream: DialectName
  /** The catalog id. */
  readonly model: string
  /** The provider's name for it. */
  readonly upstreamModel: string
}

/** The same model may stand behind two dialects. */
const catalogId = (upstream: DialectName, upstreamModel: string): string =>
  `test/${upstream === 'responses' ? 'responses-' : ''}${upstreamModel}`

export const surfaces: Readonly<Record<SurfaceName, TestSurface>> = { chat, messages, responses, gemini }

const pair = <Surface extends SurfaceName>(surface: Surface, upstream: DialectName, upstreamModel: string) => ({
  surface,
  upstream,
  model: catalogId(upstream, upstreamModel),
  upstreamModel,
})

const upstreamModels: Readonly<Record<DialectName, readonly string[]>> = {
  chat: ['gpt-5.6', 'plain-1'],
  messages: ['claude-opus-5-5', 'claude-sonnet-4-5'],
  gemini: ['gemini-3.8-flash'],
  responses: ['gpt-5.6'],
}
const names = ['chat', 'messages', 'responses', 'gemini'] as const

export const pairs: readonly Pair[] = [
  pair('chat', 'chat', 'gpt-5.6'),
  pair('chat', 'messages', 'claude-opus-5-5'),
  pair('chat', 'messages', 'claude-sonnet-4-5'),
  pair('messages', 'messages', 'claude-opus-5-5'),
  pair('messages', 'chat', 'gpt-5.6'),
  pair('messages', 'chat', 'plain-1'),
  pair('chat', 'gemini', 'gemini-3.8-flash'),
  pair('messages', 'gemini', 'gemini-3.8-flash'),
  pair('chat', 'responses', 'gpt-5.6'),
  pair('messages', 'responses', 'gpt-5.6'),
  pair('responses', 'responses', 'gpt-5.6'),
  pair('responses', 'chat', 'gpt-5.6'),
  pair('responses', 'chat', 'plain-1'),
  pair('responses', 'messages', 'claude-opus-5-5'),
  pair('responses', 'messages', 'claude-sonnet-4-5'),
  pair('responses', 'gemini', 'gemini-3.8-flash'),
  pair('gemini', 'gemini', 'gemini-3.8-flash'),
  pair('gemini', 'chat', 'gpt-5.6'),
  pair('gemini', 'chat', 'plain-1'),
  pair('gemini', 'messages', 'claude-opus-5-5'),
  pair('gemini', 'messages', 'claude-sonnet-4-5'),
  pair('gemini', 'responses', 'gpt-5.6'),
]

/** One pair for each way from provider to caller: what is said does not depend on the model. */
export const replyPair = (surface: SurfaceName, upstream: DialectName): Pair =>
  pair(surface, upstream, upstreamModels[upstream].at(-1) ?? '')
export const replyPairs: readonly Pair[] = pairs
  .map(({ surface, upstream }) => replyPair(surface, upstream))
  .filter(
    ({ surface, model }, at, all) => at === all.findIndex((one) => one.surface === surface && one.model === model),
  )

export function withModel({ surface, upstream }: Pair, upstreamModel: string): Pair {
  return pair(surface, upstream, upstreamModel)
}

export function dialectOfPath(path: string): DialectName {
  if (path.endsWith('/responses')) return 'responses'
  if (isGeminiPath(path)) return 'gemini'
  return path.endsWith('/messages') ? 'messages' : 'chat'
}

const providerOf: Readonly<Record<DialectName, string>> = {
  chat: 'chatty',
  messages: 'messy',
  gemini: 'gem',
  responses: 'respondent',
}

/** Models that only some tests are about. */
const furtherModels: Readonly<Partial<Record<DialectName, readonly string[]>>> = {
  chat: ['deepseek-v4-pro'],
  messages: ['claude-opus-4-1'],
  gemini: ['gemini-2.5-flash'],
}

/** Per million tokens: 1.00 in, 2.00 out, 0.10 cached, 1.25 written. */
const price = `{ input: "1.00", output: "2.00", cache_read: "0.10", cache_write: "1.25", cache_write_1h: "2.00", web_search: "10.00",
      tiers: { flex: { input: "0.50", output: "1.00" }, priority: { input: "2.00", output: "4.00" } } }`

/** Models at a provider of each dialect. */
export function stageConfig(url: string): string {
  const models = names.flatMap((upstream) =>
    [...upstreamModels[upstream], ...(furtherModels[upstream] ?? [])].map(
      (model) => `  - id: ${catalogId(upstream, model)}
    price: ${price}
    max_output_tokens: 8000
    default_max_tokens: 4096
    routes: [{ provider: ${providerOf[upstream]}, model: ${model} }]`,
    ),
  )
  return `providers:
  - { id: chatty, dialect: openai-chat, base_url: "${url}/v1", api_key: upstream-secret-chat }
  - { id: messy, dialect: anthropic-messages, base_url: "${url}", api_key: upstream-secret-messages }
  - { id: gem, dialect: gemini, base_url: "${url}/v1beta", api_key: upstream-secret-gemini }
  - { id: respondent, dialect: openai-responses, base_url: "${url}/v1", api_key: upstream-secret-responses }
models:
${models.join('\n')}
`
}

export interface Stage {
  readonly gateway: Gateway
  readonly upstream: Upstream
  readonly tags: ContentTags
  ask(pair: Pair, body: object, headers?: Record<string, string>): Promise<Response>
  jump(seconds: number): void
  /** A day passes: whatever was learned of the providers' health is over. */
  calm(): void
  stop(): Promise<void>
}

/** `settings`: more sections of the configuration file. */
export async function openStage(handler: UpstreamHandler, settings = ''): Promise<Stage> {
  const upstream = startUpstream(handler)
  const clock = createJumpClock()
  const gateway = await startGateway({ config: stageConfig(upstream.url) + settings, clock })
  const tags = await contentTagsOf(gateway)
  return {
    tags,
    jump: (seconds) => clock.jump(seconds),
    calm: () => clock.jump(86_400),
    gateway,
    upstream,
    ask: ({ surface, model }, members, headers) =>
      ask(gateway, surfaces[surface], tagged(JSON.stringify({ model, ...members }), tags), headers),
    stop: () => stopAll(gateway, upstream),
  }
}
