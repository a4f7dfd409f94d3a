// The result of a proof: figures for people and sentences about what is broken. A test looks at the second, the long
// run prints both.

import type { Receipt } from '../../parts/crash-client.ts'
import { gatewayCommand } from '../../parts/program.ts'
import type { Fleet } from './fleet.ts'

export interface Proof {
  readonly figures: Readonly<Record<string, string | number>>
  /** None = it holds. */
  readonly faults: readonly string[]
}

/** A line about how far it is. */
export type Progress = (line: string) => void

export async function until(isSo: () => boolean | Promise<boolean>, pauseMs = 20): Promise<void> {
  while (!(await isSo())) await Bun.sleep(pauseMs)
}

export function countEnds(receipts: readonly Receipt[]): Record<Receipt['end'], number> {
  const counts = { complete: 0, refused: 0, failed: 0, left: 0, cut: 0 }
  for (const { end } of receipts) counts[end]++
  return counts
}

/** `tollgate ledger verify`, as an operator runs it. */
export async function verifyByCommand({ databaseUrl }: Pick<Fleet, 'databaseUrl'>): Promise<readonly string[]> {
  const child = Bun.spawn([...gatewayCommand(), 'ledger', 'verify'], {
    env: { PATH: process.env.PATH ?? '', DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [output, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return exitCode === 0 ? [] : [`tollgate ledger verify ended with ${exitCode}: ${output}${errors}`]
}
