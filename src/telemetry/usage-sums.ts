// Sums over requests, and their columns in an export. Money is a decimal string in USD and adds up exactly; tokens are in
// kinds that never overlap.

import { isoTime } from '../kernel/clock.ts'
import { formatUsd, type Nano, zeroNano } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import type { LoggedRequest } from './request-row.ts'

export interface ExportColumn<Item> {
  readonly name: string
  /** null = not known. */
  value(item: Item): string | number | boolean | null
}

export const usageGroups = ['day', 'workspace', 'project', 'key', 'model', 'provider'] as const
export type UsageGroup = (typeof usageGroups)[number]

const tokenColumns = {
  input_tokens: 'inputTokens',
  cache_read_tokens: 'cacheReadTokens',
  cache_write_tokens: 'cacheWriteTokens',
  cache_write_1h_tokens: 'cacheWriteLongTokens',
  output_tokens: 'outputTokens',
} as const satisfies Record<string, keyof Usage>

const tokenNames = Object.entries(tokenColumns)

const groupColumns: Readonly<Record<UsageGroup, ExportColumn<LoggedRequest>>> = {
  day: { name: 'day', value: ({ startedAt }) => isoTime(startedAt).slice(0, 10) },
  workspace: { name: 'workspace_id', value: ({ workspaceId }) => workspaceId },
  project: { name: 'project_id', value: ({ projectId }) => projectId },
  key: { name: 'key_id', value: ({ keyId }) => keyId },
  model: { name: 'model', value: ({ model }) => model ?? null },
  provider: { name: 'provider', value: ({ provider }) => provider ?? null },
}

/** Of the requests that have the same values in all groups. */
export interface UsageSum {
  readonly groups: readonly (string | number | boolean | null)[]
  requests: number
  /** Those with a failure, also inside a stream. */
  failed: number
  /** Those charged by estimated usage. */
  estimated: number
  readonly tokens: number[]
  cost: Nano
}

export interface UsageSums {
  readonly columns: readonly ExportColumn<UsageSum>[]
  add(request: LoggedRequest): void
  /** Ordered by their groups. */
  list(): readonly UsageSum[]
}

export function sumRequests(groupBy: readonly UsageGroup[]): UsageSums {
  const sums = new Map<string, UsageSum>()
  const groups = groupBy.map((group) => groupColumns[group])
  return {
    columns: [
      ...groups.map(({ name }, at) => ({ name, value: (sum: UsageSum) => sum.groups[at] ?? null })),
      { name: 'requests', value: (sum) => sum.requests },
      { name: 'failed_requests', value: (sum) => sum.failed },
      { name: 'estimated_requests', value: (sum) => sum.estimated },
      ...tokenNames.map(([name], at) => ({ name, value: (sum: UsageSum) => sum.tokens[at] ?? 0 })),
      { name: 'cost_usd', value: (sum) => formatUsd(sum.cost) },
    ],
    add(request) {
      const values = groups.map(({ value }) => value(request))
      const name = JSON.stringify(values)
      const sum = sums.get(name) ?? emptySum(values)
      sums.set(name, sum)
      const { usage, charge, code } = request
      sum.requests++
      if (code !== undefined) sum.failed++
      if (charge !== undefined) sum.cost = (sum.cost + charge) as Nano
      if (!usage) return
      if (usage.source === 'estimated') sum.estimated++
      for (const [at, [, bucket]] of tokenNames.entries()) sum.tokens[at] = (sum.tokens[at] ?? 0) + usage[bucket]
    },
    list: () =>
      Array.from(sums)
        .sort(byName)
        .map(([, sum]) => sum),
  }
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

function emptySum(groups: UsageSum['groups']): UsageSum {
  return { groups, requests: 0, failed: 0, estimated: 0, tokens: tokenNames.map(() => 0), cost: zeroNano }
}
