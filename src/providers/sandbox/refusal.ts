// Why the sandbox does not answer. A refusal is an outcome, returned and not thrown; each wire puts it into its own
// provider's words, status and shape.

export type RefusalReason =
  | { readonly kind: 'invalid'; readonly message: string; readonly param?: string; readonly code?: string }
  /** The body is not a JSON object. */
  | { readonly kind: 'unreadable' }
  | { readonly kind: 'prompt-too-long'; readonly tokens: number; readonly tokensMax: number }
  | { readonly kind: 'unknown-model'; readonly model: string }
  | { readonly kind: 'unknown-path'; readonly path: string }
  | { readonly kind: 'throttled'; readonly model: string; readonly retryAfterSeconds: number }
  | { readonly kind: 'unavailable'; readonly model: string }

export class Refusal {
  constructor(readonly reason: RefusalReason) {}
}

export function invalid(message: string, facts: { readonly param?: string; readonly code?: string } = {}): Refusal {
  return new Refusal({ kind: 'invalid', message, ...facts })
}
