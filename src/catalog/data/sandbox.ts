// The sandbox's models, in the form of the configuration file. The prices are made up but not zero, so that ledger, limits and
// charts have something to show. docs/sandbox.md describes each model.

import type { ModelEntry } from '../entry.ts'

const provider = 'sandbox'
const size = { context_tokens: 128_000, max_output_tokens: 64_000, default_max_tokens: 4_096 } as const
/** The first call of a new installation: 12 in, 8 out, $0.000028. */
const price = { input: '1.00', output: '2.00' } as const

export const sandboxModels: readonly ModelEntry[] = [
  {
    id: 'sandbox/echo',
    owned_by: provider,
    name: 'Sandbox Echo',
    ...size,
    tags: ['vision', 'json'],
    price,
    routes: [{ provider, model: 'echo', priority: 1, weight: 1 }],
  },
  {
    id: 'sandbox/tools',
    owned_by: provider,
    name: 'Sandbox Tools',
    ...size,
    tags: ['tools'],
    price,
    routes: [{ provider, model: 'tools', priority: 1, weight: 1 }],
  },
  {
    id: 'sandbox/think',
    owned_by: provider,
    name: 'Sandbox Think',
    ...size,
    tags: ['reasoning'],
    price: { input: '1.00', output: '8.00' },
    routes: [{ provider, model: 'think', priority: 1, weight: 1 }],
  },
  {
    id: 'sandbox/cache',
    owned_by: provider,
    name: 'Sandbox Cache',
    ...size,
    tags: ['json', 'caching'],
    price: { ...price, cache_read: '0.10', cache_write: '1.25', cache_write_1h: '2.00' },
    routes: [{ provider, model: 'cache', priority: 1, weight: 1 }],
  },
  {
    id: 'sandbox/slow',
    owned_by: provider,
    name: 'Sandbox Slow',
    ...size,
    tags: ['json'],
    price,
    routes: [{ provider, model: 'slow', priority: 1, weight: 1 }],
  },
  {
    id: 'sandbox/flaky',
    owned_by: provider,
    name: 'Sandbox Flaky',
    ...size,
    tags: ['json'],
    price,
    routes: [
      { provider, model: 'flaky-first', priority: 1, weight: 1 },
      { provider, model: 'flaky-second', priority: 2, weight: 1 },
    ],
  },
  {
    id: 'sandbox/throttled',
    owned_by: provider,
    name: 'Sandbox Throttled',
    ...size,
    tags: [],
    price,
    routes: [{ provider, model: 'throttled', priority: 1, weight: 1 }],
  },
  {
    id: 'sandbox/down',
    owned_by: provider,
    name: 'Sandbox Down',
    ...size,
    tags: [],
    price,
    routes: [{ provider, model: 'down', priority: 1, weight: 1 }],
  },
  {
    id: 'sandbox/breaks-off',
    owned_by: provider,
    name: 'Sandbox Breaks Off',
    ...size,
    tags: [],
    price,
    routes: [{ provider, model: 'breaks-off', priority: 1, weight: 1 }],
  },
]
