/** @jsxImportSource preact */
// The figures of a time on one row of tiles.

import { exactCount } from '../../../catalog/figures.ts'
import { Amount } from '../parts/amount.tsx'
import type { StatsAnswer, WalletAnswer } from '../parts/api-answers.ts'
import { withQuery } from '../parts/call-api.ts'
import { FigureTile } from '../parts/figure-tile.tsx'
import { useResource } from '../parts/use-resource.ts'
import { useWorkspaces } from '../parts/workspaces.tsx'
import { firstTokenText } from './first-token-text.ts'
import { lastsText, paceDays, paceOf } from './pace.ts'

const dayMs = 86_400_000

export interface StatTilesProps {
  readonly stats: StatsAnswer
  /** Epoch milliseconds. */
  readonly now: number
}

export function StatTiles({ stats, now }: StatTilesProps) {
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
        label="First token, half within"
        value={first ? firstTokenText(first.p50) : 'no traffic yet'}
        note={first && `95 %: ${firstTokenText(first.p95)} (n = ${exactCount(first.count)}, estimated)`}
      />
      <FigureTile
        label="Tokens"
        value={exactCount(total.input_tokens + total.output_tokens)}
        note={`${exactCount(total.input_tokens)} in, ${exactCount(total.output_tokens)} out`}
      />
      <WalletTiles now={now} />
    </dl>
  )
}

/** Of the chosen workspace, or of the only one: money of several is in several wallets. */
function WalletTiles({ now }: { readonly now: number }) {
  const { workspaces, chosen } = useWorkspaces()
  const workspace = chosen ?? (workspaces?.length === 1 ? workspaces[0] : undefined)
  const from = new Date(now - paceDays * dayMs).toISOString()
  const { value: wallet } = useResource<WalletAnswer>(workspace && `/api/workspaces/${workspace.id}/wallet`)
  const { value: week } = useResource<StatsAnswer>(
    workspace && withQuery('/api/stats', { from, workspace_id: workspace.id }),
  )
  if (!workspace) return <FigureTile label="Available" value="–" note="choose a workspace" />
  const pace = week && paceOf(week)
  return (
    <>
      <FigureTile label="Available" value={wallet ? <Amount usd={wallet.available} /> : '…'} href="/console/wallet" />
      {!wallet || !week ? (
        <FigureTile label="Lasts at this pace" value="…" />
      ) : pace ? (
        <FigureTile
          label="Lasts at this pace"
          value={lastsText(wallet.available, pace)}
          note={`as spent in the last ${pace.span}`}
        />
      ) : (
        <FigureTile label="Lasts at this pace" value="no spend yet" note={`in the last ${paceDays} days`} />
      )}
    </>
  )
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(share < 0.1 ? 2 : 1))} %`
}
