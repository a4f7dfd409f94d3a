// Imports channels and tokens of new-api (and one-api, its ancestor): from the JSON of its API (`GET /api/channel/`,
// `GET /api/token/`) or from the rows of its SQLite database. Read in QuantumNous/new-api, constant/channel.go and
// model/token.go, 2026-08. Secrets of tokens cannot be carried: Tollgate stores no keys of others.

import { z } from 'zod'
import { isoTime } from '../../kernel/clock.ts'
import type { Declaration } from '../declaration.ts'
import { Draft, factsOf, providerId, variableName } from './draft.ts'

const number = z.coerce.number()
const channelSchema = z.looseObject({
  id: number,
  type: number,
  key: z.string().nullish(),
  name: z.string().nullish(),
  status: number.nullish(),
  base_url: z.string().nullish(),
  models: z.string().nullish(),
  group: z.string().nullish(),
  model_mapping: z.string().nullish(),
  priority: number.nullish(),
  weight: number.nullish(),
})
const tokenSchema = z.looseObject({
  name: z.string(),
  status: number.nullish(),
  expired_time: number.nullish(),
  remain_quota: number.nullish(),
  unlimited_quota: z.union([z.boolean(), number]).nullish(),
  model_limits_enabled: z.union([z.boolean(), number]).nullish(),
  model_limits: z.string().nullish(),
  allow_ips: z.string().nullish(),
})

/** By channel type: dialect, usual address, and what the dialect's paths are appended to below it. */
const channelTypes: Readonly<Record<number, readonly [dialect: string, baseUrl: string, path: string]>> = {
  1: ['openai-chat', 'https://api.openai.com', '/v1'],
  3: ['openai-chat', '', '/openai/v1'],
  4: ['openai-chat', 'http://localhost:11434', '/v1'],
  8: ['openai-chat', '', ''],
  14: ['anthropic-messages', 'https://api.anthropic.com', ''],
  17: ['openai-chat', 'https://dashscope.aliyuncs.com', '/compatible-mode/v1'],
  20: ['openai-chat', 'https://openrouter.ai/api', '/v1'],
  24: ['gemini', 'https://generativelanguage.googleapis.com', '/v1beta'],
  25: ['openai-chat', 'https://api.moonshot.cn', '/v1'],
  26: ['openai-chat', 'https://open.bigmodel.cn', '/api/paas/v4'],
  27: ['openai-chat', 'https://api.perplexity.ai', ''],
  31: ['openai-chat', 'https://api.lingyiwanwu.com', '/v1'],
  34: ['openai-chat', 'https://api.cohere.ai', '/compatibility/v1'],
  35: ['openai-chat', 'https://api.minimax.chat', '/v1'],
  40: ['openai-chat', 'https://api.siliconflow.cn', '/v1'],
  42: ['openai-chat', 'https://api.mistral.ai', '/v1'],
  43: ['openai-chat', 'https://api.deepseek.com', '/v1'],
  45: ['openai-chat', 'https://ark.cn-beijing.volces.com', '/api/v3'],
  46: ['openai-chat', 'https://qianfan.baidubce.com', '/v2'],
  48: ['openai-chat', 'https://api.x.ai', '/v1'],
}

const enabled = 1
/** new-api's unit: this many are one US dollar. */
const quotaPerUsd = 500_000

export interface NewApiRows {
  readonly channels: readonly unknown[]
  readonly tokens: readonly unknown[]
}

/** Answers of its API, alone or as `{ "channels": …, "tokens": … }`. */
export function rowsOf(value: unknown): NewApiRows {
  const listOf = (answer: unknown): readonly unknown[] => {
    if (Array.isArray(answer)) return answer
    if (typeof answer !== 'object' || answer === null) return []
    const { data, items } = answer as { readonly data?: unknown; readonly items?: unknown }
    return listOf(items ?? data)
  }
  const { channels, tokens } = (Array.isArray(value) ? {} : (value ?? {})) as Readonly<Record<string, unknown>>
  if (channels !== undefined || tokens !== undefined) return { channels: listOf(channels), tokens: listOf(tokens) }
  const list = listOf(value)
  const isToken = (row: unknown) => typeof row === 'object' && row !== null && 'remain_quota' in row
  return { channels: list.filter((row) => !isToken(row)), tokens: list.filter(isToken) }
}

export function importNewApi({ channels, tokens }: NewApiRows): { draft: Draft; declaration: Declaration | undefined } {
  const draft = new Draft()
  const read = z.array(channelSchema).parse(channels)
  const best = Math.max(0, ...read.map(({ priority }) => priority ?? 0))
  for (const channel of read) importChannel(draft, channel, best)
  const keys = z
    .array(tokenSchema)
    .parse(tokens)
    .flatMap((token) => importToken(draft, token))
  if (keys.length === 0) return { draft, declaration: undefined }
  draft.leave('secrets of tokens', 'each key gets a new secret, which `tollgate config apply` prints')
  return { draft, declaration: { workspaces: [{ name: 'default', projects: [{ name: 'new-api', keys }] }] } }
}

function importChannel(draft: Draft, channel: z.output<typeof channelSchema>, best: number): void {
  const name = channel.name || `channel ${channel.id}`
  const where = `channel ${channel.id} (${name})`
  const type = channelTypes[channel.type]
  if (channel.status != null && channel.status !== enabled) return draft.leave(where, 'it is disabled')
  if (!type) return draft.leave(where, `channel type ${channel.type} is not imported`)
  const [dialect, usualUrl, path] = type
  const root = (channel.base_url || usualUrl).replace(/\/+$/, '')
  if (root === '') return draft.leave(where, 'it has no address')
  if (channel.group && channel.group !== 'default') {
    draft.leave(`${where}.group ${channel.group}`, 'use an allowlist of a project, or a price list of a workspace')
  }
  const mapping = parseMapping(draft, channel.model_mapping, where)
  const keys = (channel.key ?? '').split('\n').filter((line) => line.trim() !== '')
  for (const [at, key] of (keys.length === 0 ? [undefined] : keys).entries()) {
    const id = providerId(at === 0 ? name : `${name}-${at + 1}`)
    const variable = variableName(id)
    draft.needs(variable, key === undefined ? {} : { value: key.trim(), note: `the key of ${where}` })
    const provider = draft.provider({ id, dialect, base_url: root + path, api_key: `\${${variable}}` })
    for (const model of (channel.models ?? '').split(',').map((each) => each.trim())) {
      if (model === '') continue
      const upstream = mapping[model] ?? model
      // Higher comes first there, lower here; a weight of 0 is an equal share there.
      const priority = Math.min(1000, 1 + best - (channel.priority ?? 0))
      const weight = channel.weight ? { weight: channel.weight } : {}
      draft.route(model, { provider, model: upstream, priority, ...weight }, factsOf(upstream))
    }
  }
}

function parseMapping(draft: Draft, text: string | null | undefined, where: string): Readonly<Record<string, string>> {
  if (!text) return {}
  try {
    return z.record(z.string(), z.string()).parse(JSON.parse(text))
  } catch {
    draft.leave(`${where}.model_mapping`, 'it is not an object of names')
    return {}
  }
}

function importToken(draft: Draft, token: z.output<typeof tokenSchema>) {
  const where = `token ${token.name}`
  if (token.status != null && token.status !== enabled) {
    draft.leave(where, 'it is disabled, expired or used up')
    return []
  }
  const models = token.model_limits_enabled ? (token.model_limits ?? '').split(',').filter((each) => each !== '') : []
  const sources = (token.allow_ips ?? '').split(/[\s,]+/).filter((each) => each !== '')
  const left = token.unlimited_quota ? undefined : (token.remain_quota ?? 0) / quotaPerUsd
  if (left !== undefined) {
    draft.leave(`${where}.remain_quota`, 'there is no lifetime quota; it became a limit per month of the same amount')
  }
  return [
    {
      name: token.name,
      ...(models.length > 0 && { models: models.map((each) => draft.aliases[each] ?? each) }),
      ...(sources.length > 0 && { sources }),
      ...(left !== undefined && { limits: { spend_per_month: left.toFixed(6).replace(/0{1,4}$/, '') } }),
      ...(token.expired_time && token.expired_time > 0 && { expires_at: isoTime(token.expired_time * 1000) }),
    },
  ]
}
