// A credential's secret as it is stored: encrypted with a data key of its own, which is wrapped by a key made from the
// master secret. Both are bound to whose it is and where it may go, so a row that was copied to another tenant, or
// pointed at another address, does not open. Rotation changes the wrapping only.

import { randomBytes } from 'node:crypto'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { Secret } from '../../kernel/secret.ts'
import { open, seal } from './aes-gcm.ts'
import type { CredentialId } from './credential.ts'
import type { KeyRing, WrappingKey } from './key-ring.ts'

/** What a secret is bound to: every fact of its row that decides who uses it, for what, and where it is sent. */
export interface Belonging {
  readonly id: CredentialId
  readonly workspaceId: WorkspaceId
  readonly provider: string
  readonly origin: string
  readonly baseUrl: string | undefined
}

export interface Envelope {
  readonly ciphertext: string
  readonly wrappedKey: string
  readonly keyVersion: string
}

/** `unknown_secret`: wrapped under a master secret we do not have. `altered`: not the row that was written. */
export type EnvelopeFault = 'unknown_secret' | 'altered'

const dataKeyBytes = 32

export function sealSecret(secret: Secret, belonging: Belonging, wrappingKey: WrappingKey): Envelope {
  const dataKey = randomBytes(dataKeyBytes)
  const envelope = {
    ciphertext: seal(dataKey, Buffer.from(secret.reveal()), bindingOf('secret', belonging)),
    wrappedKey: wrappingKey.wrap(dataKey, bindingOf('data-key', belonging)),
    keyVersion: wrappingKey.version,
  }
  dataKey.fill(0)
  return envelope
}

export function openEnvelope(envelope: Envelope, belonging: Belonging, keys: KeyRing): Secret | EnvelopeFault {
  const wrappingKey = keys.find(envelope.keyVersion)
  if (wrappingKey === undefined) return 'unknown_secret'
  const dataKey = wrappingKey.unwrap(envelope.wrappedKey, bindingOf('data-key', belonging))
  if (dataKey?.length !== dataKeyBytes) return 'altered'
  const plain = open(dataKey, envelope.ciphertext, bindingOf('secret', belonging))
  dataKey.fill(0)
  if (plain === undefined) return 'altered'
  const secret = new Secret(plain.toString())
  plain.fill(0)
  return secret
}

/** The data key under another master secret; the ciphertext stays as it is and is not decrypted. */
export function rewrap(
  wrappedKey: string,
  belonging: Belonging,
  keys: { readonly from: WrappingKey; readonly to: WrappingKey },
): string | 'altered' {
  const binding = bindingOf('data-key', belonging)
  const dataKey = keys.from.unwrap(wrappedKey, binding)
  if (dataKey === undefined) return 'altered'
  const rewrapped = keys.to.wrap(dataKey, binding)
  dataKey.fill(0)
  return rewrapped
}

/** JSON, because joined texts could be cut apart in two ways. Stored rows depend on every character of it. */
function bindingOf(purpose: 'secret' | 'data-key', belonging: Belonging): string {
  const { workspaceId, provider, id, origin, baseUrl } = belonging
  return JSON.stringify(['tollgate-credential-1', purpose, workspaceId, provider, id, origin, baseUrl ?? null])
}
