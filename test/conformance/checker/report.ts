// Reports the checks, for people as a table and for programs as JSON.

import type { CheckResult } from './check-result.ts'
import type { DialectName } from './probe.ts'

export interface NamedResult extends CheckResult {
  readonly name: string
}

export interface DialectReport {
  readonly dialect: DialectName
  readonly title: string
  /** Why nothing was checked: the endpoint does not speak this dialect. */
  readonly unserved: string | undefined
  readonly results: readonly NamedResult[]
}

export interface Report {
  readonly baseUrl: string
  readonly model: string
  readonly dialects: readonly DialectReport[]
}

/** Whether every check passed, and there were any. */
export function isConformant({ dialects }: Report): boolean {
  const results = dialects.flatMap((each) => each.results)
  return results.length > 0 && results.every(({ outcome }) => outcome !== 'failed')
}

const signs = { passed: '✓', failed: '✗', skipped: '–' } as const
const nameWidth = 22

export function textReport(report: Report): string {
  const lines = [`${report.baseUrl}   model ${report.model}`, '']
  for (const { title, dialect, unserved, results } of report.dialects) {
    lines.push(`${title} (${dialect})`)
    if (unserved !== undefined) lines.push(`  ${signs.skipped} not served here: ${unserved}`)
    for (const { name, outcome, notes } of results) {
      // A failure may have several reasons; each has a line, under the first.
      for (const [at, note] of (notes.length > 0 ? notes : ['']).entries()) {
        const head = at === 0 ? `${signs[outcome]} ${name}` : ''
        lines.push(`  ${head.padEnd(nameWidth)}  ${note}`.trimEnd())
      }
    }
    lines.push('')
  }
  lines.push(summary(report), '')
  return lines.join('\n')
}

function summary({ dialects }: Report): string {
  const results = dialects.flatMap((each) => each.results)
  if (results.length === 0) return 'Nothing could be checked.'
  const count = (outcome: CheckResult['outcome']): number =>
    results.filter((result) => result.outcome === outcome).length
  const parts = [`${count('passed')} passed`, `${count('failed')} failed`]
  if (count('skipped') > 0) parts.push(`${count('skipped')} could not be judged`)
  return parts.join(', ')
}

export function jsonReport(report: Report): string {
  const dialects = report.dialects.map(({ dialect, unserved, results }) => ({
    dialect,
    served: unserved === undefined,
    ...(unserved !== undefined && { reason: unserved }),
    checks: results.map(({ name, outcome, notes }) => ({ name, outcome, notes })),
  }))
  const value = { base_url: report.baseUrl, model: report.model, conformant: isConformant(report), dialects }
  return `${JSON.stringify(value, null, 2)}\n`
}
