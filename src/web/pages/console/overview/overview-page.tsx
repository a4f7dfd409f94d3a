/** @jsxImportSource preact */
// What the gateway did lately: spend, requests, errors, speed, and for how long the money lasts. Every figure is the
// server's sum, and leads to the requests it is made from.

import { useEffect, useState } from 'preact/hooks'
import { systemClock } from '../../../../kernel/clock.ts'
import type { ConsoleData } from '../../../page-data.ts'
import { useAddressQuery } from '../parts/address-query.ts'
import type { StatsAnswer } from '../parts/api-answers.ts'
import { withQuery } from '../parts/call-api.ts'
import { FirstCall } from '../parts/first-call.tsx'
import { Empty, Loading, Refused } from '../parts/resource-view.tsx'
import { useResource } from '../parts/use-resource.ts'
import { useWorkspaces } from '../parts/workspaces.tsx'
import { useZone } from '../parts/zone.tsx'
import { FirstSteps } from './first-steps.tsx'
import { StatCharts } from './stat-charts.tsx'
import { StatGroups } from './stat-groups.tsx'
import { StatTiles } from './stat-tiles.tsx'

const ranges = [
  { name: '24h', label: 'Last 24 hours', days: 1 },
  { name: '7d', label: 'Last 7 days', days: 7 },
  { name: '30d', label: 'Last 30 days', days: 30 },
] as const

const dayMs = 86_400_000
const refreshMs = 30_000

export function OverviewPage({ address }: ConsoleData) {
  const [query, change] = useAddressQuery(['range', 'group'])
  const range = ranges.find(({ name }) => name === query.range) ?? ranges[0]
  const { workspaces, chosen, isDecided } = useWorkspaces()
  const workspace = chosen ?? (workspaces?.length === 1 ? workspaces[0] : undefined)
  const now = useNow()
  const from = now === undefined ? '' : new Date(now - range.days * dayMs).toISOString()
  const group = query.group === '' ? 'model' : query.group
  const path = withQuery('/api/stats', { from, workspace_id: chosen?.id, group })
  const { value: stats, refusal, again } = useResource<StatsAnswer>(now === undefined || !isDecided ? undefined : path)
  return (
    <>
      <div class="console-head">
        <h1>Overview</h1>
        <div class="controls">
          <label class="field">
            <span>Time</span>
            <select value={range.name} onChange={({ currentTarget }) => change({ range: currentTarget.value })}>
              {ranges.map(({ name, label }) => (
                <option key={name} value={name}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        </div>
      </div>
      {refusal && <Refused refusal={refusal} again={again} />}
      {!stats && !refusal && <Loading what="the figures" />}
      {stats && (
        <>
          <Span stats={stats} />
          <StatTiles stats={stats} now={now ?? 0} />
          {workspace && <FirstSteps workspaceId={workspace.id} now={now ?? 0} />}
          {stats.total.requests === 0 ? (
            <Empty title="No requests in this time">
              <FirstCall address={address} />
            </Empty>
          ) : (
            <>
              <StatCharts stats={stats} unit={range.days === 1 ? 'hour' : 'day'} />
              <StatGroups stats={stats} group={group} choose={(next) => change({ group: next })} />
            </>
          )}
        </>
      )}
    </>
  )
}

/** Not on the server, whose moment would be another; later once in a while. */
function useNow(): number | undefined {
  const [now, setNow] = useState<number | undefined>(undefined)
  useEffect(() => {
    const tick = () => setNow(systemClock.now())
    tick()
    const timer = setInterval(tick, refreshMs)
    return () => clearInterval(timer)
  }, [])
  return now
}

function Span({ stats }: { readonly stats: StatsAnswer }) {
  const zone = useZone()
  const isBehind = Date.parse(stats.counted_until) < Math.min(Date.parse(stats.to), systemClock.now()) - refreshMs * 4
  return (
    <p class="hint">
      {zone.hour(stats.from)} to {zone.hour(stats.to)}, in whole hours; times in {zone.name}.
      {isBehind && <strong> Counted up to {zone.moment(stats.counted_until)}; the rest follows.</strong>}
    </p>
  )
}
