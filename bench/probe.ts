// Asks every contender once for each kind of cell before anything is measured: who cannot do it is left out with the
// reason instead of filling a table with errors, and how many events of a stream arrive is known beforehand.

import { type Cell, PATHS, requestBody, requestHeaders } from './cells.ts'
import type { Running } from './contenders/contender.ts'

export interface Refusal {
  readonly contender: string
  readonly reason: string
  readonly cells: readonly string[]
}

/** How many events a stream loses on its way: borders that the other dialect has not, chunks without content. */
export type Probe = { readonly eventsFewer: number } | { readonly refused: string }

const PROBE_MS_MAX = 30_000
/** More than that is not a matter of borders. */
const EVENTS_FEWER_MAX = 20

/** Cells of one kind have the same answer. */
export function kindOf({ surface, provider, events }: Cell): string {
  return `${surface} → ${provider}, ${events > 0 ? 'streamed' : 'JSON'}`
}

export async function probe(running: Running, cell: Cell): Promise<Probe> {
  const { surface, provider } = cell
  const call = running.call(surface, provider)
  if (!call) return { refused: 'does not translate between the dialects' }
  const events = cell.events > 0 ? 100 : 0
  try {
    const response = await fetch(`http://127.0.0.1:${running.port}${call.path ?? PATHS[surface]}`, {
      method: 'POST',
      headers: { ...requestHeaders(surface), ...call.headers },
      body: requestBody({ surface, events, paceMs: 1, waitMs: 0, promptBytes: 1_000 }, call.model),
      signal: AbortSignal.timeout(PROBE_MS_MAX),
    })
    const text = await response.text()
    if (response.status !== 200) return { refused: `${kindOf(cell)}: status ${response.status}: ${oneLine(text)}` }
    if (events === 0) return { eventsFewer: 0 }
    const arrived = text.split('\n\n').length - 1
    const eventsFewer = Math.max(0, events - arrived)
    if (eventsFewer <= EVENTS_FEWER_MAX) return { eventsFewer }
    return { refused: `${kindOf(cell)}: ${arrived} of ${events} events arrived: ${oneLine(text)}` }
  } catch (error) {
    return { refused: `${kindOf(cell)}: ${error instanceof Error ? error.message : String(error)}` }
  }
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, 160)
}
