// Envelope encryption of credentials and stored responses: each secret is encrypted with its own data key, which is wrapped by a key derived
// from the master secret. Both are bound to the owner and the destination, so a row that was copied to another workspace
// or pointed at another address does not decrypt. A rotation only rewraps the data keys.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { assert } from '../kernel/failure.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import { deriveSubkey, type MasterSecret } from './secrets.ts'

/** Id of one secret: replacing it creates a new id, so that what was learned about the old one no longer applies. */
export type CredentialId = `cred_${string}`

/** The columns that a secret is bound to: all that decide who uses it, for what, and where it is sent. */
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

/** `unknown_secret`: wrapped under a master secret that this process does not have. `altered`: the row was changed. */
export type EnvelopeFault = 'unknown_secret' | 'altered'

const dataKeyBytes = 32

export function sealSecret(secret: Secret, belonging: Belonging, wrappingKey: WrappingKey): Envelope {
  return sealBytes(Buffer.from(secret.reveal()), credentialBinding(belonging), wrappingKey)
}

export function openEnvelope(envelope: Envelope, belonging: Belonging, keys: KeyRing): Secret | EnvelopeFault {
  const plain = openBytes(envelope, credentialBinding(belonging), keys)
  if (typeof plain === 'string') return plain
  const secret = new Secret(plain.toString())
  plain.fill(0)
  return secret
}

/** The owner of an envelope, as text. It is authenticated and not stored. */
export type Binding = (purpose: 'secret' | 'data-key') => string

/** Encrypts with a new data key. */
export function sealBytes(plain: Uint8Array, bindingOf: Binding, wrappingKey: WrappingKey): Envelope {
  const dataKey = randomBytes(dataKeyBytes)
  const envelope = {
    ciphertext: seal(dataKey, plain, bindingOf('secret')),
    wrappedKey: wrappingKey.wrap(dataKey, bindingOf('data-key')),
    keyVersion: wrappingKey.version,
  }
  dataKey.fill(0)
  return envelope
}

export function openBytes(envelope: Envelope, bindingOf: Binding, keys: KeyRing): Buffer | EnvelopeFault {
  const wrappingKey = keys.find(envelope.keyVersion)
  if (wrappingKey === undefined) return 'unknown_secret'
  const dataKey = wrappingKey.unwrap(envelope.wrappedKey, bindingOf('data-key'))
  if (dataKey?.length !== dataKeyBytes) return 'altered'
  const plain = open(dataKey, envelope.ciphertext, bindingOf('secret'))
  dataKey.fill(0)
  return plain ?? 'altered'
}

/** Wraps the data key under another master secret; the ciphertext stays and is not decrypted. */
export function rewrapKey(
  wrappedKey: string,
  bindingOf: Binding,
  keys: { readonly from: WrappingKey; readonly to: WrappingKey },
): string | 'altered' {
  const binding = bindingOf('data-key')
  const dataKey = keys.from.unwrap(wrappedKey, binding)
  if (dataKey === undefined) return 'altered'
  const rewrapped = keys.to.wrap(dataKey, binding)
  dataKey.fill(0)
  return rewrapped
}

/** JSON, because joined texts would be ambiguous. Stored rows depend on every character of it. */
export function credentialBinding({ workspaceId, provider, id, origin, baseUrl }: Belonging): Binding {
  return (purpose) =>
    JSON.stringify(['tollgate-credential-1', purpose, workspaceId, provider, id, origin, baseUrl ?? null])
}

export interface WrappingKey {
  /** Stored with what it wrapped. Derived from the secret, so that versions need no configuration. */
  readonly version: string
  wrap(dataKey: Uint8Array, binding: string): string
  /** undefined: altered, or wrapped by another key or for another binding. */
  unwrap(wrapped: string, binding: string): Uint8Array | undefined
}

/** During a rotation there are two keys: new credentials use the current one, and both are used for reading. */
export interface KeyRing {
  readonly current: WrappingKey
  /** undefined: wrapped under a master secret that this process does not have. */
  find(version: string): WrappingKey | undefined
}

export function createKeyRing(current: MasterSecret, previous?: MasterSecret): KeyRing {
  const keys = [current, ...(previous === undefined ? [] : [previous])].map(createWrappingKey)
  const byVersion = new Map(keys.map((key) => [key.version, key]))
  return { current: createWrappingKey(current), find: (version) => byVersion.get(version) }
}

export function createWrappingKey(secret: MasterSecret): WrappingKey {
  const key = deriveSubkey(secret, 'credential-kek')
  // From a separate derivation: the version is public and must say nothing about the key. Eight bytes tell two secrets
  // apart; another secret with the same version would still fail to unwrap.
  const version = Buffer.from(hkdfSync('sha256', key, new Uint8Array(0), 'key-version', 8)).toString('hex')
  return {
    version,
    // The version is part of the binding, so a row that names another key than it was wrapped with does not unwrap.
    wrap: (dataKey, binding) => seal(key, dataKey, `${binding} ${version}`),
    unwrap: (wrapped, binding) => open(key, wrapped, `${binding} ${version}`),
  }
}

const algorithm = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

/**
 * AES-256-GCM: base64url of nonce (12 bytes), ciphertext, tag (16 bytes). The binding is authenticated and not stored. The
 * nonce is random: of 2³² with one key two are equal with a probability of 2⁻³³.
 */
export function seal(key: Uint8Array, plain: Uint8Array, binding: string): string {
  assert(key.length === keyBytes, 'a key has 32 bytes')
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.from(binding))
  const sealed = [nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]
  return Buffer.concat(sealed).toString('base64url')
}

/** undefined: not sealed with this key for this binding, or altered since; there is no way to tell which. */
export function open(key: Uint8Array, text: string, binding: string): Buffer | undefined {
  const sealed = Buffer.from(text, 'base64url')
  if (sealed.length < nonceBytes + tagBytes) return undefined
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(binding))
  decipher.setAuthTag(sealed.subarray(-tagBytes))
  const plain = decipher.update(sealed.subarray(nonceBytes, -tagBytes))
  try {
    return Buffer.concat([plain, decipher.final()])
  } catch {
    // The tag does not match. The runtime's error says no more and must not carry decrypted data.
    return undefined
  }
}
