// The provider's proof of its own reasoning. It sits on parts of any kind, while only thinking blocks carry a proof in
// the canonical form: so each one travels in a signature of ours, with the part it belongs to.

import { isRecord, parseRecord, textOf } from '../canonical/json.ts'
import { readSignature } from '../canonical/signature.ts'

export type SignedPart =
  /** The thought of this very block, or the last text of its turn. */
  | { readonly part: 'thought' | 'text'; readonly signature: string }
  /** A call, by the id the caller knows it by: callers may send calls and thinking back in another order. */
  | { readonly part: 'call'; readonly id: string; readonly signature: string }

/** As the blob of a signature of ours. */
export function writeBlob(signed: SignedPart): string {
  return JSON.stringify(signed)
}

/** undefined = not a proof that `issuer` gave. */
export function readProof(proof: string | undefined, issuer: string): SignedPart | undefined {
  const own = readSignature(proof ?? '')
  const blob = own?.issuer === issuer ? parseRecord(own.blob ?? '') : undefined
  if (!isRecord(blob)) return undefined
  const { part } = blob
  const signature = textOf(blob.signature)
  if (signature === '') return undefined
  if (part === 'call') return { part, id: textOf(blob.id), signature }
  return part === 'thought' || part === 'text' ? { part, signature } : undefined
}
