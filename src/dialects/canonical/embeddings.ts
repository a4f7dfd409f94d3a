// Embeddings: what a dialect implements to ask for vectors or to answer with them, and the form between dialects.

import type { Failure } from '../../kernel/failure.ts'
import { noTokens, type Usage } from '../../kernel/usage.ts'
import type { RequestHeaders } from '../../wire/http-message.ts'
import type { EditedRequest, RequestEdits } from '../byte-lane/edits.ts'
import type { RelayReply } from '../reply/relay.ts'
import type { ProviderFault } from './faults.ts'
import type { Envelope, RenderContext, SentRequest, Target, Warning } from './translation.ts'

export interface EmbeddingsRequest {
  /** Each text, or its tokens, becomes one vector. */
  readonly inputs: readonly (string | readonly number[])[]
  /** The length of the vectors; undefined = the model's own. */
  readonly dimensions: number | undefined
  /** The purpose of the vectors, in Google's words, such as RETRIEVAL_QUERY. */
  readonly taskType?: string | undefined
  readonly title?: string | undefined
  readonly warnings: readonly Warning[]
}

export interface EmbeddingsReply {
  /** One for each input, in order. */
  readonly vectors: readonly (readonly number[])[]
  /** undefined if the provider reported none. */
  readonly usage: Usage | undefined
}

export interface RenderedEmbeddings {
  /** Appended to the endpoint's base URL. */
  readonly path: string
  readonly body: Uint8Array<ArrayBuffer>
  readonly warnings: readonly Warning[]
}

/** In a dialect that providers are called in. */
export interface UpstreamEmbeddings {
  renderRequest(request: EmbeddingsRequest, target: Target): RenderedEmbeddings | Failure
  parseReply(body: Uint8Array): EmbeddingsReply | { readonly fault: ProviderFault }
}

/** In a dialect that callers use too. */
export interface Embeddings extends UpstreamEmbeddings {
  readEnvelope(body: Uint8Array<ArrayBuffer>, headers: RequestHeaders, url?: string): SentRequest | Failure
  parseRequest(sent: SentRequest): EmbeddingsRequest | Failure
  renderReply(reply: EmbeddingsReply & { readonly usage: Usage }, envelope: Envelope, context: RenderContext): string
  /** For a provider of the same dialect: its path, and the caller's bytes. */
  editRequest(sent: SentRequest, edits: RequestEdits): EditedRequest & { readonly path: string }
  relayReply(envelope: Envelope): RelayReply
}

/** The counts of a reply that has input only; undefined if none were counted. */
export function inputUsage(tokens: number | undefined): Usage | undefined {
  if (tokens === undefined || tokens === 0) return undefined
  return { ...noTokens, inputTokens: tokens, cacheReported: 'none', source: 'reported' }
}

/** Little-endian 32-bit floats, as OpenAI's clients ask for them. */
export function base64Vector(vector: readonly number[]): string {
  return Buffer.from(Float32Array.from(vector).buffer).toString('base64')
}
