// Which trace a request belongs to: the caller's, where the header says so (W3C Trace Context), or one of its own. The
// caller's decision to keep a trace is followed; for the others a share is drawn.

import type { TraceContext } from '../request-record.ts'

export interface BeginTraceOptions {
  readonly sampleRatio: number
  randomBytes(count: number): Uint8Array
}

/** What is not kept needs no names. */
const unsampled: TraceContext = Object.freeze({ traceId: '', spanId: '', parentSpanId: undefined, sampled: false })

/** version-trace-parent-flags; later versions may append more, version ff is forbidden. */
const traceparentPattern = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

export type BeginTrace = (traceparent: string | null) => TraceContext

export function createBeginTrace({ sampleRatio, randomBytes }: BeginTraceOptions): BeginTrace {
  /** The draw is part of the trace's id, so that every program that is asked for the same share keeps the same traces. */
  const keepBelow = Math.round(sampleRatio * 2 ** 48)
  return (traceparent) => {
    const parent = readTraceparent(traceparent)
    if (parent) {
      if (!parent.sampled) return unsampled
      const { traceId, spanId: parentSpanId } = parent
      return { traceId, spanId: hex(randomBytes(8)), parentSpanId, sampled: true }
    }
    if (sampleRatio <= 0) return unsampled
    const traceId = hex(randomBytes(16))
    if (Number.parseInt(traceId.slice(-12), 16) >= keepBelow) return unsampled
    return { traceId, spanId: hex(randomBytes(8)), parentSpanId: undefined, sampled: true }
  }
}

interface Traceparent {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

/** undefined for one that is missing, malformed or all zeros: then the trace begins here. */
export function readTraceparent(text: string | null): Traceparent | undefined {
  const match = traceparentPattern.exec(text ?? '')
  if (!match) return undefined
  const [whole, traceId = '', spanId = '', flags = '', more] = match
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  if (whole.startsWith('00') && more !== undefined) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

export function randomBytes(count: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(count))
}
