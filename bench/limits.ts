// The project's performance targets, and whether a run met them. Every target is a ratio to a contender measured in the same
// rounds, because absolute figures depend on the machine. Nothing gets slower than an earlier commit, and people do not
// notice the gateway; ratios of CPU to floors and to other gateways are reported without a target
// (docs/decisions/performance.md).

import type { Cell } from './cells.ts'
import { type Measurement, type Metric, ratioBetween } from './summary.ts'

interface Limit {
  readonly metric: Metric
  readonly cell: string
  /** `tollgate` where nothing is said. */
  readonly of?: string
  readonly to: string
  /** The other side's cell, where it is not the same one. */
  readonly toCell?: string
  readonly most?: number
  readonly least?: number
  readonly text: string
}

const REQUEST = 'CPU per request'
const THROUGHPUT = 'Requests per second'
const EVENT = 'CPU per stream event'
const TRANSLATED_EVENT = `${EVENT}, translated`

const LIMITS: readonly Limit[] = [
  { metric: 'cpuMicrosPerRequest', cell: 'chat', to: 'bare-durable', text: REQUEST },
  { metric: 'cpuMicrosPerRequest', cell: 'chat-1c', to: 'bare-durable', text: REQUEST },
  { metric: 'cpuMicrosPerRequest', cell: 'chat', of: 'unbilled', to: 'bare', text: `${REQUEST}, unbilled` },
  { metric: 'cpuMicrosPerRequest', cell: 'chat', to: 'busbar', text: REQUEST },
  { metric: 'cpuMicrosPerRequest', cell: 'chat', of: 'unbilled', to: 'busbar', text: `${REQUEST}, unbilled` },
  { metric: 'cpuMicrosPerRequest', cell: 'chat', to: 'bifrost', text: REQUEST },
  { metric: 'cpuMicrosPerRequest', cell: 'chat', to: 'portkey', text: REQUEST },
  { metric: 'cpuMicrosPerRequest', cell: 'chat', to: 'litellm', text: REQUEST },
  { metric: 'cpuMicrosPerRequest', cell: 'chat-to-messages', to: 'busbar', text: `${REQUEST}, translated` },
  { metric: 'requestsPerSecond', cell: 'chat', to: 'busbar', text: THROUGHPUT },
  { metric: 'requestsPerSecond', cell: 'chat', to: 'bifrost', text: THROUGHPUT },
  { metric: 'requestsPerSecond', cell: 'chat', to: 'portkey', text: THROUGHPUT },
  { metric: 'requestsPerSecond', cell: 'chat', to: 'litellm', text: THROUGHPUT },
  { metric: 'cpuMicrosPerEvent', cell: 'chat-stream', to: 'bare-loop', text: EVENT },
  { metric: 'cpuMicrosPerEvent', cell: 'chat-to-messages-stream', to: 'bare-loop', text: TRANSLATED_EVENT },
  { metric: 'cpuMicrosPerEvent', cell: 'messages-to-chat-stream', to: 'bare-loop', text: TRANSLATED_EVENT },
  { metric: 'cpuMicrosPerEvent', cell: 'chat-long-stream', to: 'bare-loop', text: `${EVENT}, 1,000-event streams` },
  { metric: 'addedP99Ms', cell: 'chat', to: 'bare-durable', text: 'Added p99' },
  { metric: 'addedP99Ms', cell: 'chat-open', to: 'bare-durable', most: 2, text: 'Added p99' },
  { metric: 'addedP50Ms', cell: 'chat-stream', to: 'bare', most: 1.5, text: 'Added time to the first token' },
  {
    metric: 'requestsPerSecond',
    cell: 'chat',
    to: 'many-wallets',
    least: 0.7,
    text: `${THROUGHPUT} of one hot wallet`,
  },
  // Six spend limits of the kinds that a request is looked up in for each of its limits.
  {
    metric: 'cpuMicrosPerRequest',
    cell: 'chat',
    of: 'six-limits',
    to: 'tollgate',
    most: 1.05,
    text: `${REQUEST}, six limits`,
  },
  // The Responses API costs what the other two cost.
  ...[
    ['responses', 'chat'],
    ['responses-to-chat', 'messages-to-chat'],
  ].flatMap(([cell = '', toCell = '']): Limit[] => [
    { metric: 'cpuMicrosPerRequest', cell, to: 'tollgate', toCell, most: 1.1, text: `${REQUEST}, against ${toCell}` },
    {
      ...{ metric: 'cpuMicrosPerEvent', cell: `${cell}-stream`, to: 'tollgate', toCell: `${toCell}-stream` },
      ...{ most: 1.1, text: `${EVENT}, against ${toCell}` },
    },
  ]),
  ...['chat', 'chat-1c', 'chat-to-messages'].map(
    (cell): Limit => ({ metric: 'cpuMicrosPerRequest', cell, to: 'before', most: 1.1, text: REQUEST }),
  ),
  ...['chat-stream', 'chat-to-messages-stream'].map(
    (cell): Limit => ({ metric: 'cpuMicrosPerEvent', cell, to: 'before', most: 1.1, text: EVENT }),
  ),
  { metric: 'addedP50Ms', cell: 'chat-stream', to: 'before', most: 1.1, text: 'Added time to the first token' },
  { metric: 'addedP99Ms', cell: 'chat-open', to: 'before', most: 1.1, text: 'Added p99' },
]

export interface Verdict {
  readonly text: string
  readonly cell: string
  readonly to: string
  readonly ratio: number
  /** `at most 1.60`; empty for a figure that is shown without being held to a limit. */
  readonly limit: string
  readonly isKept: boolean
}

/** One line for each limit whose two sides were measured. */
export function judge(measurements: readonly Measurement[], cells: readonly Cell[]): Verdict[] {
  const verdicts: Verdict[] = []
  for (const { metric, cell: id, of = 'tollgate', to, toCell, most, least, text } of LIMITS) {
    const cell = cells.find((candidate) => candidate.id === id)
    if (!cell) continue
    const ratio = ratioBetween(measurements, cell, metric, { of, to, toCell })
    if (!Number.isFinite(ratio)) continue
    const limit = most !== undefined ? `at most ${short(most)}` : least !== undefined ? `at least ${short(least)}` : ''
    const isKept = ratio <= (most ?? Number.POSITIVE_INFINITY) && ratio >= (least ?? 0)
    verdicts.push({ text, cell: id, to, ratio, limit, isKept })
  }
  return verdicts
}

export function renderVerdicts(verdicts: readonly Verdict[]): string[] {
  return verdicts.map(({ text, cell, to, ratio, limit, isKept }) => {
    const verdict = limit === '' ? '' : `, ${limit}: ${isKept ? 'kept' : 'broken'}`
    return `${text} (${cell}): ${short(ratio)} × ${to}${verdict}`
  })
}

function short(value: number): string {
  return value >= 0.2 ? value.toFixed(2) : value.toFixed(3)
}
