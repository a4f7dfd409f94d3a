// Reports of providers, built from their public documentation and from what a fake provider counted: Anthropic's analytics and
// its older reports, OpenAI's organization reports, OpenRouter's activity. Shares no code with what reads them.

import { picoPerToken } from './prices.ts'
import { type Counted, dayMs } from './traffic.ts'

export const adminKey = 'sk-admin-of-the-test'

export interface FakeBills extends Disposable {
  readonly url: string
  readonly calls: string[]
  counted: readonly Counted[]
  /** Answers in place of the report: the next calls get one each. */
  readonly faults: ((url: URL) => Response | undefined)[]
  currency: string
  pageSize: number
  /** Until when it has counted, epoch milliseconds. */
  refreshedAt: number
}

type Member = 'input' | 'cacheRead' | 'cacheWrite' | 'output'
const members = ['input', 'cacheRead', 'cacheWrite', 'output'] as const

interface Group {
  readonly day: number
  readonly facts: Counted
  requests: number
  readonly tokens: Record<Member, number>
  readonly pico: Record<Member, bigint>
}

/** By day and the dimensions that a report is grouped by. */
function groupsOf(counted: readonly Counted[], by: readonly (keyof Counted)[], from: number, to: number): Group[] {
  const groups = new Map<string, Group>()
  for (const call of counted) {
    const day = Math.floor(call.at / dayMs) * dayMs
    if (day < from || day >= to) continue
    const name = JSON.stringify([day, ...by.map((dimension) => String(call[dimension]))])
    const zero = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }
    const none = { input: 0n, cacheRead: 0n, cacheWrite: 0n, output: 0n }
    const group = groups.get(name) ?? { day, facts: call, requests: 0, tokens: zero, pico: none }
    groups.set(name, group)
    group.requests++
    for (const member of members) {
      group.tokens[member] += call[member]
      group.pico[member] += (BigInt(call[member]) * (picoPerToken[call.model]?.[member] ?? 0n) * call.percent) / 100n
    }
  }
  return [...groups.values()].sort((a, b) => a.day - b.day)
}

/** `123.45`: pico-dollars with so many decimals of a unit that has 10 to the 12 or 10 of them. */
function decimal(pico: bigint, digits: 10 | 12): string {
  const text = String(pico).padStart(digits + 1, '0')
  return `${text.slice(0, -digits)}.${text.slice(-digits)}`.replace(/\.?0+$/, '')
}

const iso = (at: number) => new Date(at).toISOString()
const tokenTypes = {
  input: 'uncached_input_tokens',
  cacheRead: 'cache_read_input_tokens',
  cacheWrite: 'cache_creation.ephemeral_5m_input_tokens',
  output: 'output_tokens',
} as const

export function startFakeBills(counted: readonly Counted[] = []): FakeBills {
  const calls: string[] = []
  const state = {
    counted,
    faults: [] as FakeBills['faults'],
    currency: 'USD',
    pageSize: 50,
    refreshedAt: Number.MAX_SAFE_INTEGER,
  }
  const paged = (url: URL, rows: readonly unknown[], more: object = {}) => {
    const at = Number(url.searchParams.get('page') ?? '0')
    const data = rows.slice(at, at + state.pageSize)
    const end = at + state.pageSize
    const next = end < rows.length ? { has_more: true, next_page: String(end) } : { has_more: false, next_page: null }
    return json({ data, ...next, ...more })
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const url = new URL(request.url)
      calls.push(`${request.method} ${url.pathname}`)
      const fault = state.faults.shift()?.(url)
      if (fault) return fault
      const sent = request.headers.get('x-api-key') ?? request.headers.get('authorization')?.replace('Bearer ', '')
      if (sent !== adminKey)
        return Response.json({ type: 'error', error: { type: 'permission_error', message: 'no' } }, { status: 403 })
      const answer = answers[url.pathname]
      return answer ? answer(url, request) : new Response('not found', { status: 404 })
    },
  })
  const period = (url: URL) => {
    const [from, to] = ['starting_at', 'ending_at'].map((name) => Date.parse(url.searchParams.get(name) ?? ''))
    return [from ?? 0, to ?? 0] as const
  }
  const unixPeriod = (url: URL) =>
    [Number(url.searchParams.get('start_time')) * 1000, Number(url.searchParams.get('end_time')) * 1000] as const
  const days = (from: number, to: number) => Array.from({ length: (to - from) / dayMs }, (_, at) => from + at * dayMs)
  const group = ({ facts }: Group, more: object = {}) => ({
    ...{ api_key_id: facts.key, model: facts.model, service_tier: facts.tier || 'standard', speed: 'standard' },
    ...{ inference_geo: facts.region || 'global', ...more },
  })
  const dimensions = ['key', 'model', 'tier', 'region'] as const
  const answers: Readonly<Record<string, (url: URL, request: Request) => Response>> = {
    '/v1/organizations/analytics/usage'(url, request) {
      if (request.headers.get('anthropic-beta') !== 'analytics-usage-cost-2026-08-24')
        return new Response('', { status: 400 })
      const rows = groupsOf(state.counted, dimensions, ...period(url)).map((each) => ({
        ...{ starting_at: iso(each.day), ending_at: iso(each.day + dayMs), group: group(each) },
        usage: { ...anthropicTokens(each.tokens), requests: each.requests },
      }))
      return paged(url, rows, { data_refreshed_at: iso(Math.min(state.refreshedAt, 8e15)) })
    },
    '/v1/organizations/analytics/cost'(url) {
      const rows = groupsOf(state.counted, dimensions, ...period(url)).flatMap((each) =>
        members.flatMap((member) => {
          const amount = decimal(each.pico[member], 10)
          const cost = { amount, list_amount: amount, currency: state.currency, requests: null }
          const more = { cost_type: 'tokens', token_type: tokenTypes[member] }
          const place = { starting_at: iso(each.day), ending_at: iso(each.day + dayMs) }
          return each.tokens[member] === 0 ? [] : [{ ...place, group: group(each, more), cost }]
        }),
      )
      return paged(url, rows, { data_refreshed_at: iso(Math.min(state.refreshedAt, 8e15)) })
    },
    '/v1/organizations/usage_report/messages'(url) {
      const groups = groupsOf(state.counted, dimensions, ...period(url))
      const buckets = days(...period(url)).map((day) => ({
        ...{ starting_at: iso(day), ending_at: iso(day + dayMs) },
        results: groups
          .filter((each) => each.day === day)
          .map((each) => ({ ...group(each), ...anthropicTokens(each.tokens) })),
      }))
      return paged(url, buckets)
    },
    '/v1/organizations/cost_report'(url) {
      const groups = groupsOf(state.counted, ['model', 'tier', 'region'], ...period(url))
      const buckets = days(...period(url)).map((day) => ({
        ...{ starting_at: iso(day), ending_at: iso(day + dayMs) },
        results: groups
          .filter((each) => each.day === day)
          .flatMap((each) =>
            members.map((member) => ({
              ...{ amount: decimal(each.pico[member], 10), currency: state.currency, cost_type: 'tokens' },
              ...{ description: 'Usage', model: each.facts.model, token_type: tokenTypes[member] },
              ...{
                service_tier: each.facts.tier || 'standard',
                inference_geo: each.facts.region || 'global',
                workspace_id: null,
              },
            })),
          ),
      }))
      return paged(url, buckets)
    },
    '/v1/organization/usage/completions'(url) {
      const groups = groupsOf(state.counted, ['key', 'model', 'tier'], ...unixPeriod(url))
      const buckets = days(...unixPeriod(url)).map((day) => ({
        ...{ object: 'bucket', start_time: day / 1000, end_time: (day + dayMs) / 1000 },
        results: groups
          .filter((each) => each.day === day)
          .map(({ facts, tokens, requests }) => ({
            object: 'organization.usage.completions.result',
            input_tokens: tokens.input + tokens.cacheRead + tokens.cacheWrite,
            ...{ input_cached_tokens: tokens.cacheRead, input_cache_write_tokens: tokens.cacheWrite },
            ...{ input_uncached_tokens: tokens.input, output_tokens: tokens.output, num_model_requests: requests },
            ...{ api_key_id: facts.key, model: facts.model, batch: facts.tier === 'batch' },
            service_tier: facts.tier === '' || facts.tier === 'batch' ? 'default' : facts.tier,
          })),
      }))
      return paged(url, buckets)
    },
    '/v1/organization/usage/embeddings': (url) =>
      paged(
        url,
        days(...unixPeriod(url)).map((day) => ({ object: 'bucket', start_time: day / 1000, results: [] })),
      ),
    '/v1/organization/costs'(url) {
      const names = { input: 'input', cacheRead: 'cached input', cacheWrite: 'cache writes', output: 'output' }
      const groups = groupsOf(state.counted, ['key', 'model'], ...unixPeriod(url))
      const buckets = days(...unixPeriod(url)).map((day) => ({
        ...{ object: 'bucket', start_time: day / 1000, end_time: (day + dayMs) / 1000 },
        results: groups
          .filter((each) => each.day === day)
          .flatMap((each) =>
            members.map((member) => ({
              object: 'organization.costs.result',
              amount: { value: `@${decimal(each.pico[member], 12)}@`, currency: state.currency.toLowerCase() },
              ...{ line_item: `${each.facts.model}, ${names[member]}`, api_key_id: each.facts.key },
            })),
          ),
      }))
      return paged(url, buckets)
    },
    '/api/v1/activity'() {
      const rows = groupsOf(state.counted, ['model'], 0, Number.MAX_SAFE_INTEGER).map(
        ({ day, facts, tokens, pico, requests }) => ({
          ...{ date: iso(day).slice(0, 10), model: facts.model, requests, byok_usage_inference: 0 },
          usage: `@${decimal(pico.input + pico.cacheRead + pico.cacheWrite + pico.output, 12)}@`,
          ...{ prompt_tokens: tokens.input + tokens.cacheRead + tokens.cacheWrite, completion_tokens: tokens.output },
        }),
      )
      return json({ data: rows })
    },
  }
  return Object.assign(state, {
    url: `http://127.0.0.1:${server.port}`,
    calls,
    [Symbol.dispose]: () => void server.stop(true),
  })
}

/** Amounts that are numbers in JSON are written as such, digit by digit. */
function json(value: unknown): Response {
  const text = JSON.stringify(value).replace(/"@([0-9.]+)@"/g, '$1')
  return new Response(text, { headers: { 'content-type': 'application/json' } })
}

function anthropicTokens(tokens: Record<Member, number>) {
  return {
    uncached_input_tokens: tokens.input,
    cache_read_input_tokens: tokens.cacheRead,
    cache_creation: { ephemeral_5m_input_tokens: tokens.cacheWrite, ephemeral_1h_input_tokens: 0 },
    output_tokens: tokens.output,
    server_tool_use: { web_search_requests: 0 },
  }
}
