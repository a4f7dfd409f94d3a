// What a workspace may store as its own credential, by how it would travel. Most are a word that one header carries;
// a scheme that exchanges its credential takes the file that the host gives out.

import { apiKeyFault } from '../../tenancy/credentials.ts'
import type { AuthScheme } from '../provider.ts'
import { readOwnKeyFile } from './service-account.ts'

export interface OwnCredential {
  /** What is stored. */
  readonly text: string
  /** What people tell it by; absent = the text itself. Its last four characters are shown, and it must be no secret. */
  readonly name?: string
}

/** Follows the name of the field: "must …". Repeats nothing of the credential. */
export interface CredentialFault {
  readonly fault: string
}

const readers: Partial<Readonly<Record<AuthScheme, (text: string) => OwnCredential | CredentialFault>>> = {
  'google-oauth': (text) => {
    const read = readOwnKeyFile(text)
    return 'fault' in read ? read : { text: read.text, name: read.keyId }
  },
}

export function readOwnCredential(auth: AuthScheme, text: string): OwnCredential | CredentialFault {
  const reader = readers[auth]
  if (reader) return reader(text)
  const fault = apiKeyFault(text)
  return fault === undefined ? { text } : { fault }
}
