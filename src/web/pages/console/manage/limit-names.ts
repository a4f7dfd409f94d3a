// The limits that there are, in the order in which the pages list them.

import type { Limits } from './things.ts'

export const limitNames = [
  { name: 'requests_per_minute', label: 'Requests per minute', kind: 'whole' },
  { name: 'tokens_per_minute', label: 'Tokens per minute', kind: 'whole' },
  { name: 'concurrent_requests', label: 'Requests at the same time', kind: 'whole' },
  { name: 'spend_per_day', label: 'Spend per day (UTC), USD', kind: 'decimal' },
  { name: 'spend_per_month', label: 'Spend per month (UTC), USD', kind: 'decimal' },
] as const satisfies readonly { name: keyof Limits; label: string; kind: 'whole' | 'decimal' }[]

export type LimitName = (typeof limitNames)[number]['name']
