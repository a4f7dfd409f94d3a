// The canonical form of a request, read once however many ask for it: limits, the hold, every candidate.

import type { Envelope, ParsedRequest } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import type { Failure } from '../kernel/failure.ts'

const known = new WeakMap<Envelope, ParsedRequest | Failure>()

export function parsedRequest(
  { translation }: Pick<Dialect, 'translation'>,
  envelope: Envelope,
): ParsedRequest | Failure {
  const before = known.get(envelope)
  if (before !== undefined) return before
  const parsed = translation.parseRequest(envelope)
  known.set(envelope, parsed)
  return parsed
}
