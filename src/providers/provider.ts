// Who hosts models: where, how they want to be authenticated, and which dialects they speak. A compatible provider is
// data in this shape; only one with a transport of its own (the sandbox) brings code.

import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import type { DialectId } from '../dialects/dialect.ts'
import type { Secret } from '../kernel/secret.ts'

/** One upstream call, ready to be sent: the body is already in the endpoint's dialect. */
export interface UpstreamRequest {
  /** Appended to the endpoint's base URL, e.g. `/chat/completions`. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  readonly signal: AbortSignal
  /** Over a connection of its own, because a pooled one may be dead. */
  readonly isFresh?: boolean
}

/** Sends a request and answers with the provider's response, its body unread. */
export type Transport = (request: UpstreamRequest) => Promise<Response>

/** How a credential travels. */
export type AuthScheme = 'bearer' | 'x-api-key' | 'none'

/** A provider's URL in one dialect. */
export interface Endpoint {
  readonly dialect: DialectId
  /** What the dialect's paths are appended to, without a trailing slash. */
  readonly baseUrl: string
  readonly auth: AuthScheme
  /** What is true here of every model; facts of a model are in rules/. */
  readonly rules?: TargetRules
}

export interface Provider {
  readonly id: string
  readonly endpoints: readonly Endpoint[]
  /** The operator's credential; undefined where the auth scheme is none. */
  readonly apiKey: Secret | undefined
  /** Where the credential came from, for people: `OPENAI_API_KEY`, `tollgate.yaml:4`. Never the value. */
  readonly source: string
  /** Whether a call that is cancelled before its first output is billed all the same; absent = not. */
  readonly billsOnCancel?: boolean
  /** Its failures are on purpose: nothing is learned from them, so that every call meets the same one. */
  readonly isRehearsal?: boolean
  /** Set for providers that live inside this process; everyone else is called over the network. */
  readonly transport?: Transport
}

/** A provider as built-in data: everything but its credential, which the operator's environment supplies. */
export interface ProviderData {
  readonly id: string
  /** The environment variable that usually holds its key; setting it switches the provider on. */
  readonly variable: string
  readonly endpoints: readonly Endpoint[]
}
