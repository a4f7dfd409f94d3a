// Starts processes that work on one ledger, and reads what they report.

import { expect } from 'bun:test'
import { join } from 'node:path'
import type { Place } from './engines.ts'

export type LedgerWork = 'hold' | 'spend' | 'spend in a budget' | 'spend a plan' | 'fund' | 'renew'

export function startLedgerChild(place: Place, work: LedgerWork, workspaceId: string, ...args: readonly string[]) {
  const script = join(import.meta.dir, 'ledger-child.ts')
  return Bun.spawn([process.execPath, script, work, place.url ?? '', place.dataFolder, workspaceId, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
}

/** Each is ready before any begins. */
export async function startLedgerChildren(
  place: Place,
  work: 'hold' | 'spend',
  workspaceId: string,
  argsOf: readonly (readonly string[])[],
) {
  const children = argsOf.map((args) => {
    const child = startLedgerChild(place, work, workspaceId, ...args)
    return { child, output: child.stdout.pipeThrough(new TextDecoderStream()).getReader() }
  })
  for (const { output } of children) expect((await output.read()).value).toBe('ready\n')
  for (const { child } of children) child.stdin.end()
  return children
}

/** The counts of all of them, once they have ended. */
export async function sumCounts(
  children: Awaited<ReturnType<typeof startLedgerChildren>>,
): Promise<Readonly<Record<string, number>>> {
  const sum: Record<string, number> = {}
  for (const { child, output } of children) {
    const counts = JSON.parse((await output.read()).value ?? '{}') as Record<string, number>
    for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count
    await child.exited
  }
  return sum
}
