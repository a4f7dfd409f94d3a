// Hosts of models: their addresses, authentication and dialects. A compatible provider is data in this shape; only one with
// its own transport (the sandbox) has code.

import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import type { DialectId } from '../dialects/dialect.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Message } from '../wire/read-body.ts'
import type { ModelRules } from './rules/rule-table.ts'

/** One upstream call, ready to be sent: the body is already in the endpoint's dialect. */
export interface UpstreamRequest {
  /** Appended to the endpoint's base URL, e.g. `/chat/completions`. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  readonly signal: CancelSignal
  /** Calls with different ones never share a connection. */
  readonly credential?: Secret | undefined
  /** Use a new connection, because a pooled one may be dead. */
  readonly isFresh?: boolean | undefined
  /** Absent = the connection is not watched. Calls to base URLs of workspaces (egress-guard.ts) and calls by fetch are not. */
  readonly watch?: ConnectionWatch | undefined
}

/** Ends an upstream call early. An AbortSignal is one. */
export interface CancelSignal {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: CancelListener): void
  removeEventListener(type: 'abort', listener: CancelListener): void
}

export type CancelListener = (() => void) | { handleEvent(): void }

/** Is notified when a connection attempt begins and ends, so that it can be abandoned before anything is sent. */
export interface ConnectionWatch {
  connecting(): void
  /** From here on the provider may have received the request. */
  connected(): void
}

/** A provider's response, its body unread. A `Response` is one. */
export interface UpstreamResponse extends Message {
  readonly status: number
}

export type Transport = (request: UpstreamRequest) => Promise<UpstreamResponse>

/** A credential that is sent as it is, in a header. */
export type HeaderScheme = 'bearer' | 'x-api-key' | 'x-goog-api-key' | 'api-key'

/** One that is never sent: it signs each request, or is exchanged for a token. */
export type SigningScheme = 'sigv4' | 'google-oauth'

/** How a credential travels. */
export type AuthScheme = HeaderScheme | SigningScheme | 'none'

/** A host-specific form of a dialect's requests and replies. */
export type WrappingId = 'invoke-model' | 'raw-predict' | 'tier-header' | 'invoke-embedding' | 'predict-embedding'

/** A request before authorization. */
export interface UnsignedRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
}

/** The authorization headers. */
export type Proof = Readonly<Record<string, string>>

export interface Sign {
  /** Rejects if there is no proof. */
  (request: UnsignedRequest, credential: Secret): Promise<Proof>
  /** The host refused this proof; absent = nothing is cached. */
  refused?(credential: Secret, proof: Proof): void
}

/** A provider's URL in one dialect. */
export interface Endpoint {
  readonly dialect: DialectId
  /** The dialect's paths are appended to it; without a trailing slash. */
  readonly baseUrl: string
  readonly auth: AuthScheme
  /** Whether it is called by fetch, which knows HTTP proxies; absent = on our own sockets. */
  readonly byFetch?: boolean
  /** The base URL for a workspace's credential that names its own account; absent = `baseUrl`. */
  baseUrlOf?(credential: Secret): string
  /** Present where the scheme signs: such a scheme needs a clock, and may remember a token. */
  readonly sign?: Sign
  /** Absent = the dialect as it is. */
  readonly wrapping?: WrappingId
  /** Beta flags of the dialect that a host which wraps it knows; it refuses every other. */
  readonly betas?: readonly string[]
  /** Flags that the host knows by another name: Anthropic's → its own. */
  readonly betaNames?: Readonly<Record<string, string>>
  /** The names of the models that it serves; absent = all that the provider has. */
  readonly models?: RegExp
  /** Rules for every model of this host; facts about a model on any host are in rules/. */
  readonly rules?: TargetRules
  /** Rules for some models, but only on this host; they override `rules`. */
  readonly modelRules?: readonly ModelRules[]
}

export interface Provider {
  readonly id: string
  readonly endpoints: readonly Endpoint[]
  /** The operator's credential; undefined where the auth scheme is none. */
  readonly apiKey: Secret | undefined
  /** Where the credential came from, for people: `OPENAI_API_KEY`, `tollgate.yaml:4`. Never the value. */
  readonly source: string
  /** Fails on purpose: its failures do not affect route health, so that every call gets the same result. */
  readonly ignoresHealth?: boolean
  /** Set for providers inside this process; all others are called over the network. */
  readonly transport?: Transport
}

/** Clouds that give a process an identity, which replaces a key. */
export type Cloud = 'aws' | 'google' | 'azure'

/** Values by the name of a variable. */
export type ProviderSettings = Readonly<Record<string, string>>

/** A provider as built-in data: everything but its credential, which the operator's environment supplies. */
export interface ProviderData {
  readonly id: string
  /** The environment variable that usually holds its key; setting it switches the provider on. */
  readonly variable: string
  /** Further variables that must be set as well: parts of the credential. */
  readonly keyNeeds?: readonly string[]
  /** Parts of addresses, whatever the credential is. */
  readonly needs?: readonly string[]
  /** Further variables that may be set. */
  readonly takes?: readonly string[]
  /** Base URLs may contain `{VARIABLE}`, of those above or of `derived`. */
  readonly endpoints: readonly Endpoint[]
  /** Values that addresses need and no variable has. */
  readonly derived?: (settings: ProviderSettings) => ProviderSettings
  /** Values that a workspace's own credential brings, in place of the operator's. */
  readonly settingsOf?: (credential: string) => ProviderSettings
  /** The cloud whose identity of this process is used where `variable` is not set. */
  readonly identity?: Cloud
  /** The credential, where it is more than the value of `variable`. */
  readonly credential?: (settings: ProviderSettings) => string
}
