// A credential's secret as it is stored: encrypted with a data key of its own, which is wrapped by a key made from the
// master secret. Both are bound to whose it is and where it may go, so a row that was copied to another tenant, or
// pointed at another address, does not open. Rotation changes the wrapping only.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { assert } from '../kernel/assert.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import { deriveSubkey, type MasterSecret } from './secrets.ts'

/** Of one secret: replacing it makes a new id, so that what was learned about the old one ends with it. */
export type CredentialId = `cred_${string}`

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

// The keys that wrap the data keys of credentials, each made from a master secret. During a rotation there are two: new
// credentials are wrapped by the current one, and both are tried for reading. The bytes stay inside.

export interface WrappingKey {
  /** Stored beside what it wrapped. Follows from the secret, so that nobody has to count or configure versions. */
  readonly version: string
  wrap(dataKey: Uint8Array, binding: string): string
  /** undefined: altered, or wrapped by another key or for another binding. */
  unwrap(wrapped: string, binding: string): Uint8Array | undefined
}

export interface KeyRing {
  readonly current: WrappingKey
  /** undefined: wrapped under a master secret that this process was not given. */
  find(version: string): WrappingKey | undefined
}

/** `previous` is what a rotation is leaving behind. */
export function createKeyRing(current: MasterSecret, previous?: MasterSecret): KeyRing {
  const keys = [current, ...(previous === undefined ? [] : [previous])].map(createWrappingKey)
  const byVersion = new Map(keys.map((key) => [key.version, key]))
  return { current: createWrappingKey(current), find: (version) => byVersion.get(version) }
}

export function createWrappingKey(secret: MasterSecret): WrappingKey {
  const key = deriveSubkey(secret, 'credential-kek')
  // A derivation of its own: the name of a key is public and must say nothing about it. Eight bytes tell two secrets
  // apart; a stranger's secret that had the same name would still fail to unwrap.
  const version = Buffer.from(hkdfSync('sha256', key, new Uint8Array(0), 'key-version', 8)).toString('hex')
  return {
    version,
    // The version is part of the binding: a row that claims another key than it was wrapped with is an altered row.
    wrap: (dataKey, binding) => seal(key, dataKey, `${binding} ${version}`),
    unwrap: (wrapped, binding) => open(key, wrapped, `${binding} ${version}`),
  }
}

// AES-256-GCM over texts for the database: base64url of nonce (12 bytes), ciphertext, tag (16 bytes). The binding is
// authenticated and not stored: whoever opens must know what it was sealed for. Knows nothing of what it encrypts.

const algorithm = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

/** The nonce is random: among 2³² seals with one key two are equal with a probability of 2⁻³³. */
export function seal(key: Uint8Array, plain: Uint8Array, binding: string): string {
  assert(key.length === keyBytes, 'a key has 32 bytes')
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.from(binding))
  const sealed = [nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]
  return Buffer.concat(sealed).toString('base64url')
}

/** undefined: it was not sealed with this key for this binding, or was altered since; which of them cannot be told. */
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
    // The tag does not fit. What the runtime throws says no more, and must not carry what was decrypted.
    return undefined
  }
}
