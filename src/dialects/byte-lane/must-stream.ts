// Whether a request cannot pass as it came, because its host gives a long answer only as a stream. A translation streams in
// any case, though it be into the same dialect.

import type { Envelope } from '../canonical/envelope.ts'
import type { TargetRules } from '../canonical/target-rules.ts'

/** `usualOutputCap`: sent where the caller gave none. */
export function mustStream(
  { stream, outputCap }: Envelope,
  { unstreamedOutputMax }: TargetRules,
  usualOutputCap: number | undefined,
): boolean {
  if (stream || unstreamedOutputMax === undefined) return false
  return (outputCap ?? usualOutputCap ?? 0) > unstreamedOutputMax
}
