// The keys that wrap the data keys of credentials, each made from a master secret. During a rotation there are two: new
// credentials are wrapped by the current one, and both are tried for reading. The bytes stay inside.

import { hkdfSync } from 'node:crypto'
import { deriveSubkey, type MasterSecret } from '../secrets.ts'
import { open, seal } from './aes-gcm.ts'

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
