// The sandbox's models, in the form of the configuration file. The prices are made up but not zero, so that ledger, limits and
// charts have something to show; they cost the operator nothing. docs/sandbox.md describes each model.

import type { ModelEntry } from '../entry.ts'

const provider = 'sandbox'
const route = { provider, priority: 1, weight: 1, cost: 'free' } as const
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
    routes: [{ ...route, model: 'echo' }],
  },
  {
    id: 'sandbox/embed',
    owned_by: provider,
    name: 'Sandbox Embed',
    context_tokens: 8_192,
    tags: ['embeddings'],
    price: { input: '0.02', output: '0' },
    routes: [{ ...route, model: 'embed' }],
  },
  {
    id: 'sandbox/tools',
    owned_by: provider,
    name: 'Sandbox Tools',
    ...size,
    tags: ['tools'],
    price,
    routes: [{ ...route, model: 'tools' }],
  },
  {
    id: 'sandbox/think',
    owned_by: provider,
    name: 'Sandbox Think',
    ...size,
    tags: ['reasoning'],
    price: { input: '1.00', output: '8.00' },
    routes: [{ ...route, model: 'think' }],
  },
  {
    id: 'sandbox/cache',
    owned_by: provider,
    name: 'Sandbox Cache',
    ...size,
    tags: ['json', 'caching'],
    price: { ...price, cache_read: '0.10', cache_write: '1.25', cache_write_1h: '2.00' },
    routes: [{ ...route, model: 'cache' }],
  },
  {
    id: 'sandbox/slow',
    owned_by: provider,
    name: 'Sandbox Slow',
    ...size,
    tags: ['json'],
    price,
    routes: [{ ...route, model: 'slow' }],
  },
  {
    id: 'sandbox/flaky',
    owned_by: provider,
    name: 'Sandbox Flaky',
    ...size,
    tags: ['json'],
    price,
    routes: [
      { ...route, model: 'flaky-first' },
      { ...route, model: 'flaky-second', priority: 2 },
    ],
  },
  {
    id: 'sandbox/throttled',
    owned_by: provider,
    name: 'Sandbox Throttled',
    ...size,
    tags: [],
    price,
    routes: [{ ...route, model: 'throttled' }],
  },
  {
    id: 'sandbox/down',
    owned_by: provider,
    name: 'Sandbox Down',
    ...size,
    tags: [],
    price,
    routes: [{ ...route, model: 'down' }],
  },
  {
    id: 'sandbox/breaks-off',
    owned_by: provider,
    name: 'Sandbox Breaks Off',
    ...size,
    tags: [],
    price,
    routes: [{ ...route, model: 'breaks-off' }],
  },
]
