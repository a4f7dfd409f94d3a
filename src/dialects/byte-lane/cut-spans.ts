// Cutting elements out of a list, or members out of an object, without touching what stays.

import type { ByteEdit, JsonMembers } from '../../wire/json-members.ts'
import type { JsonSpan } from '../../wire/json-spans.ts'

const nothing = new Uint8Array(0)

/** `spans` are all of the container, in order. Each goes with the comma behind it; those at the end with the one before. */
export function cutSpans(spans: readonly JsonSpan[], isCut: (index: number) => boolean): ByteEdit[] {
  const lastKept = spans.findLastIndex((_, i) => !isCut(i))
  return spans.flatMap((span, i): ByteEdit[] => {
    if (!isCut(i)) return []
    const next = spans[i + 1]
    const start = i > lastKept ? (spans[i - 1]?.end ?? span.start) : span.start
    const end = i > lastKept || !next ? span.end : next.start
    return [{ start, end, bytes: nothing }]
  })
}

export function cutMembers({ list }: JsonMembers, names: readonly string[]): ByteEdit[] {
  const spans = list.map(({ start, valueEnd }) => ({ start, end: valueEnd }))
  return cutSpans(spans, (i) => names.includes(list[i]?.name ?? ''))
}
