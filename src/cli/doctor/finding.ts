// What the doctor found, one line each, and how it is printed: every line ends in "ok" or in what to do.

import { bold, cleanText, padded } from '../table.ts'

export interface Finding {
  /** `configuration`, `provider`: what was looked at. */
  readonly area: string
  /** What was found. */
  readonly what: string
  /** `note`: nothing is wrong, but there is something to know or to do. */
  readonly verdict: 'ok' | 'note' | 'wrong'
  /** What to do; absent exactly where the verdict is ok. */
  readonly advice?: string
}

export function ok(area: string, what: string): Finding {
  return { area, what, verdict: 'ok' }
}

export function note(area: string, what: string, advice: string): Finding {
  return { area, what, verdict: 'note', advice }
}

export function wrong(area: string, what: string, advice: string): Finding {
  return { area, what, verdict: 'wrong', advice }
}

export function isWrong({ verdict }: Finding): boolean {
  return verdict === 'wrong'
}

const marks = { ok: '✓', note: '·', wrong: '✗' } as const
const colors = { ok: 32, note: 33, wrong: 31 } as const

export function renderFindings(findings: readonly Finding[], { color }: { readonly color: boolean }): string {
  const width = Math.max(...findings.map(({ area }) => area.length))
  const lines = findings.map(({ area, what, verdict, advice }) => {
    const mark = color ? `\u001b[${colors[verdict]}m${marks[verdict]}\u001b[39m` : marks[verdict]
    const end = advice === undefined ? 'ok' : `→ ${cleanText(advice)}`
    return `${mark} ${padded(area, width, undefined)}  ${cleanText(what)}  ${color ? bold(end) : end}\n`
  })
  const faults = findings.filter(isWrong).length
  const end = faults === 0 ? 'Nothing is wrong.' : faults === 1 ? 'One thing is wrong.' : `${faults} things are wrong.`
  return `${lines.join('')}\n${end}\n`
}
