// What a credential is to the rest of the house: a provider's key that a workspace brought. Its secret is written once
// and from then on only opened for dispatch; people see the last four characters.

import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Secret } from '../../kernel/secret.ts'

/** Of one secret: replacing it makes a new id, so that what was learned about the old one ends with it. */
export type CredentialId = `cred_${string}`

export interface NewCredential {
  readonly workspaceId: WorkspaceId
  readonly provider: string
  /** Checked by how its provider takes it; apiKeyFault where it travels in a header. */
  readonly apiKey: Secret
  /** What people tell it by where the secret itself has no telling end; its last four characters are shown. */
  readonly name?: string
  /** The only place it may be sent to: the origin of `baseUrl`, or of the provider's own endpoint. */
  readonly origin: string
  /** Without a trailing slash; absent = the provider's own. Must have passed the egress guard. */
  readonly baseUrl?: string
  readonly storedAt: number
}

/** All that can be read of a credential. */
export interface CredentialSummary {
  readonly id: CredentialId
  readonly provider: string
  /** Empty for a secret so short that four characters would be most of it. */
  readonly last4: string
  readonly baseUrl: string | undefined
  readonly createdAt: number
  /** When the secret was last replaced. */
  readonly updatedAt: number
}

/** Ready for dispatch. */
export interface OpenedCredential {
  readonly id: CredentialId
  readonly apiKey: Secret
  readonly baseUrl: string | undefined
  /** Dispatch compares it with the origin it is about to call; see mayBeSentTo. */
  readonly origin: string
}

/** There is one, and it cannot be used. Never a reason to use somebody else's key without saying so. */
export interface BrokenCredential {
  readonly id: CredentialId
  /**
   * `unknown_secret`: encrypted under a master secret this process was not given, such as one left out too early in a
   * rotation. `altered`: the row is not what was written; only storing the key again helps.
   */
  readonly fault: 'unknown_secret' | 'altered'
}

/** By provider. */
export type WorkspaceCredentials = ReadonlyMap<string, OpenedCredential | BrokenCredential>

/** Long enough for any provider's key and short enough for one header. */
const apiKeyLengthMax = 4096

/** Why a text cannot be a key; undefined = it can. It travels in a header, so only visible ASCII passes. */
export function apiKeyFault(text: string): string | undefined {
  if (text === '') return 'must not be empty'
  if (text.length > apiKeyLengthMax) return `must have at most ${apiKeyLengthMax} characters`
  if (!/^[\x21-\x7e]+$/.test(text)) return 'must be letters, digits and signs only, without spaces and line breaks'
  return undefined
}

/** Whether a URL is where the credential was stored for; anywhere else would be giving the key away. */
export function mayBeSentTo(credential: OpenedCredential, url: string): boolean {
  return URL.parse(url)?.origin === credential.origin
}
