// Providers quote credentials in their complaints now and then, most of all hosts whose errors have a shape of their own.
// A caller must not learn the operator's. It masks too much rather than too little; what is a secret and looks like none
// is known only where it is our own.

import type { Secret } from '../kernel/secret.ts'

/** A shorter one is a placeholder for a host that wants none, and may be a word of the sentence. */
const ownLengthMin = 8

interface Shape {
  /** What is matched by `keep` stays. */
  readonly pattern: RegExp
  readonly keep: string
}

/** In this order: the first ones are the surest. */
const shapes: readonly Shape[] = [
  { pattern: /\b(Bearer) \S+/gi, keep: '$1 ' },
  // A JWT, whole or cut off.
  { pattern: /\b(eyJ)[\w-]{8,}(?:\.[\w-]*){0,4}/g, keep: '$1' },
  // Google's access tokens and keys, the access keys of AWS.
  { pattern: /\b(ya29)\.[\w.-]+/g, keep: '$1' },
  { pattern: /\b(AIza)[\w-]{8,}/g, keep: '$1' },
  { pattern: /\b(A[KS]IA)[A-Z0-9]{12,}/g, keep: '$1' },
  // Newer keys of Google's, Replicate's tokens, Bedrock's keys.
  { pattern: /\b(AQ\.|r8_|ABSK)[\w+/=-]{16,}/g, keep: '$1' },
  { pattern: /\b(sk-)[A-Za-z0-9*_-]{16,}/g, keep: '$1' },
  // `gsk_…`, `pplx-…`. Names of parameters look the same, and are written small and without digits; none has 65 letters.
  { pattern: /\b([A-Za-z]{2,5}[-_])(?=[a-z_-]{0,64}[A-Z0-9*]|[a-z_-]{65})[A-Za-z0-9*_-]{16,}/g, keep: '$1' },
  // Hex and base64, up to three words behind the one that says what it is.
  {
    pattern:
      /((?:key|token|secret|authorization|credential|password)s?\W{1,5}(?:\w{1,12}\W{1,5}){0,3}?)[\w+/-]{32,}={0,2}/gi,
    keep: '$1',
  },
]

/** `own`: what the request was sent with; undefined = nothing. */
export function maskSecrets(text: string, own: Secret | undefined): string {
  let masked = text
  for (const part of partsOf(own)) masked = masked.replaceAll(part, '…')
  for (const { pattern, keep } of shapes) masked = masked.replace(pattern, `${keep}…`)
  return masked
}

/** Some are several in one, `ID:SECRET:SESSION_TOKEN`; the longest first, or the whole would not be found any more. */
function partsOf(own: Secret | undefined): readonly string[] {
  if (own === undefined) return []
  const whole = own.reveal()
  return [whole, ...whole.split(':')].filter(({ length }) => length >= ownLengthMin)
}
