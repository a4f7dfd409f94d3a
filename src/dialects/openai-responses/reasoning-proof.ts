// Reasoning items as they travel inside a signature of ours: sealed by their provider, which wants them back unchanged
// and directly in front of what they led to. An item that led to nothing the caller got is never given back, because the
// provider refuses one without its successor.

import { isRecord, parseRecord, textOf } from '../canonical/json.ts'
import { readSignature, writeSignature } from '../canonical/signature.ts'

export interface ReasoningItem {
  /** '' if the provider gave none. */
  readonly id: string
  /** The parts of the summary, which the provider wants to see again as they were. */
  readonly summary: readonly string[]
  readonly encryptedContent: string
}

export interface ReasoningProof {
  /** Several where one followed another. */
  readonly items: readonly ReasoningItem[]
  /** The id of the call they led to, as the caller knows it; undefined = they led to a message. */
  readonly call: string | undefined
}

/** undefined = it is not sealed, and nothing that could be given back. */
export function readReasoningItem({
  id,
  summary,
  encrypted_content,
}: Record<string, unknown>): ReasoningItem | undefined {
  const encryptedContent = textOf(encrypted_content)
  return encryptedContent === '' ? undefined : { id: textOf(id), summary: summaryTexts(summary), encryptedContent }
}

export function summaryTexts(summary: unknown): string[] {
  return Array.isArray(summary) ? summary.map((part) => (isRecord(part) ? textOf(part.text) : textOf(part))) : []
}

/** `proof` undefined = the reasoning is only to be read. */
export function signReasoning(issuer: string, proof: ReasoningProof | undefined): string {
  return writeSignature({ issuer, blob: proof && writeBlob(proof) })
}

function writeBlob({ items, call }: ReasoningProof): string {
  return JSON.stringify({
    items: items.map(({ id, summary, encryptedContent }) => ({ id, summary, encrypted_content: encryptedContent })),
    call,
  })
}

/** undefined = not a proof that `issuer` gave. A caller could have written it, so that nothing in it is trusted. */
export function readProof(signature: string, issuer: string): ReasoningProof | undefined {
  const own = readSignature(signature)
  const blob = own?.issuer === issuer ? parseRecord(own.blob ?? '') : undefined
  if (!blob || !Array.isArray(blob.items)) return undefined
  const items = blob.items.filter(isRecord).flatMap((item) => readReasoningItem(item) ?? [])
  return items.length === 0 ? undefined : { items, call: textOf(blob.call) || undefined }
}

/** Ours, and without anything that could be given back. */
export function isOnlyToRead(signature: string): boolean {
  const own = readSignature(signature)
  return own !== undefined && own.blob === undefined
}
