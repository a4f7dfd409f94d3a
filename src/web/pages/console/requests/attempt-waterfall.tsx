/** @jsxImportSource preact */
// What was tried, one after the other, on one scale of time.

import { shortMs } from '../../../catalog/figures.ts'
import type { AttemptItem } from '../parts/api-answers.ts'

const width = 400

export function AttemptWaterfall({
  attempts,
  totalMs,
}: {
  readonly attempts: readonly AttemptItem[]
  readonly totalMs: number
}) {
  if (attempts.length === 0) return <p>No provider was called.</p>
  const spent = attempts.reduce((sum, { ms }) => sum + ms, 0)
  const scale = width / Math.max(spent, totalMs, 1)
  let from = 0
  const rows = attempts.map((attempt) => {
    const row = { ...attempt, from }
    from += attempt.ms
    return row
  })
  return (
    <table class="bill waterfall">
      <caption class="visually-hidden">Attempts in their order, and how long each took to answer</caption>
      <thead>
        <tr>
          <th scope="col">Attempt</th>
          <th scope="col">Outcome</th>
          <th scope="col" class="number">
            Answered after
          </th>
          <th scope="col">
            <span class="visually-hidden">On a scale of time</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ provider, upstream_model: model, outcome, ms, from: start }, at) => (
          <tr key={`${at} ${provider}`}>
            <th scope="row">
              {provider} <code>{model}</code>
            </th>
            <td>{outcome}</td>
            <td class="number">{shortMs(ms)}</td>
            <td class="bar">
              <svg viewBox={`0 0 ${width} 10`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
                <rect
                  class={outcome === 'ok' ? 'ok' : 'failed'}
                  x={start * scale}
                  y="0"
                  width={Math.max(2, ms * scale)}
                  height="10"
                />
              </svg>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
