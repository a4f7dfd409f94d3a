// How much a heap took in between two collections, read from what the collector prints with BUN_JSC_logGC=1. Each line
// says how full the heap was at its begin and at its end; what lies between an end and the next begin was allocated.

interface Collection {
  readonly heap: string
  readonly beginKb: number
  readonly endKb: number
}

function collectionOf(line: string): Collection | undefined {
  const [, heap = '', begin, end] = /^\[GC<(0x[0-9a-f]+)>: START \w+ (\d+)kb .*=> (\d+)kb, p=/.exec(line) ?? []
  return heap === '' ? undefined : { heap, beginKb: Number(begin), endKb: Number(end) }
}

/**
 * From the last collection before line `from` to the last one of all, on the largest heap: that of the main thread. Two
 * of them must have followed each other at once: a begin counts room that an end does not, and theirs is nothing else.
 */
export function allocatedBytes(lines: readonly string[], from: number): number {
  const collections = lines.map(collectionOf)
  const largest = Math.max(...collections.map((collection) => collection?.endKb ?? 0))
  const heap = collections.find((collection) => collection?.endKb === largest)?.heap
  const gapsKb: number[] = []
  let endKb: number | undefined
  for (const [at, collection] of collections.entries()) {
    if (collection === undefined || collection.heap !== heap) continue
    if (at >= from && endKb !== undefined) gapsKb.push(collection.beginKb - endKb)
    endKb = collection.endKb
  }
  const emptyKb = Math.min(...gapsKb)
  return 1024 * gapsKb.reduce((sum, gapKb) => sum + gapKb - emptyKb, 0)
}
