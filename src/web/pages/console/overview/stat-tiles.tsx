/** @jsxImportSource preact */
// The figures of a time on one row of tiles.

import { exactCount, shortMs } from '../../../catalog/figures.ts'
import { Amount } from '../parts/amount.tsx'
import type { StatsAnswer, WalletAnswer } from '../parts/api-answers.ts'
import { withQuery } from '../parts/call-api.ts'
import { FigureTile } from '../parts/figure-tile.tsx'
import { useResource } from '../parts/use-resource.ts'
import { useWorkspaces } from '../parts/workspaces.tsx'
import { daysLeft } from './stat-columns.ts'

export function StatTiles({ stats, days }: { readonly stats: StatsAnswer; readonly days: number }) {
  const { total, from } = stats
  const requests = withQuery('/console/requests', { from })
  const failed = withQuery('/console/requests', { from, outcome: 'failed' })
  const first = total.first_event_ms
  return (
    <dl class="tiles">
      <FigureTile label="Spend" value={<Amount usd={total.cost} />} note="charged in this time" href={requests} />
      <FigureTile label="Requests" value={exactCount(total.requests)} href={requests} />
      <FigureTile
        label="Errors"
        value={total.requests === 0 ? '–' : percent(total.errors / total.requests)}
        note={`${exactCount(total.errors)} of ${exactCount(total.requests)}`}
        href={failed}
      />
      <FigureTile
        label="First event, half within"
        value={first ? `≈ ${shortMs(first.p50)}` : 'no traffic yet'}
        note={first && `95 % within ≈ ${shortMs(first.p95)} (n = ${exactCount(first.count)}, estimated)`}
      />
      <FigureTile
        label="Tokens"
        value={exactCount(total.input_tokens + total.output_tokens)}
        note={`${exactCount(total.input_tokens)} in, ${exactCount(total.output_tokens)} out`}
      />
      <WalletTile spent={total.cost} days={days} />
    </dl>
  )
}

/** Of the chosen workspace, or of the only one: money of several is in several wallets. */
function WalletTile({ spent, days }: { readonly spent: string; readonly days: number }) {
  const { workspaces, chosen } = useWorkspaces()
  const workspace = chosen ?? (workspaces?.length === 1 ? workspaces[0] : undefined)
  const { value: wallet } = useResource<WalletAnswer>(workspace && `/api/workspaces/${workspace.id}/wallet`)
  if (!workspace) return <FigureTile label="Available" value="–" note="choose a workspace" />
  if (!wallet) return <FigureTile label="Available" value="…" />
  const left = daysLeft(wallet.available, spent, days)
  const pace = left === undefined ? 'nothing spent in this time' : `${lasts(left)} at the pace of this time`
  return <FigureTile label="Available" value={<Amount usd={wallet.available} />} note={pace} href="/console/wallet" />
}

function lasts(days: number): string {
  if (days > 999) return 'more than 999 days'
  return days < 2 ? `≈ ${Math.round(days * 24)} hours` : `≈ ${Math.round(days)} days`
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(share < 0.1 ? 2 : 1))} %`
}
