// The form of an API key, and what is stored instead of it. `sk-tg-`, 28 random base62 characters (166 bits), and 6
// that are the CRC32 of the rest: a mistyped or invented key is detected without a query.

import { hkdfSync } from 'node:crypto'
import { assert } from '../kernel/failure.ts'

export type ApiKey = `sk-tg-${string}`

const prefix = 'sk-tg-'

/** API keys, personal, refresh and device tokens by their prefixes, and access tokens, which are JWTs. */
const secretForms = /(sk-tg-)\w+|(tg-(?:mt|rt|dc)-)[\w.-]+|(eyJ)[\w.-]+/g

/** For text that a client sent and that is shown or recorded: a key or token can stand in place of a model. */
export function hideKeys(text: string): string {
  if (!text.includes('tg-') && !text.includes('eyJ')) return text
  return text.replace(secretForms, (_, key = '', token = '', jwt = '') => `${key}${token}${jwt}…`)
}
const randomLength = 28
const checksumLength = 6
const bodyLength = prefix.length + randomLength
export const apiKeyLength = bodyLength + checksumLength
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const form = new RegExp(`^${prefix}[0-9A-Za-z]{${randomLength + checksumLength}}$`)

export function createApiKey(): ApiKey {
  const body = `${prefix}${randomBase62(randomLength)}` as const
  return `${body}${checksum(body)}`
}

export function hasApiKeyForm(text: string): text is ApiKey {
  return form.test(text) && checksum(text.slice(0, bodyLength)) === text.slice(bodyLength)
}

/** All that is shown of a key after its creation. */
export function lastFour(key: ApiKey): string {
  return key.slice(-4)
}

/** Computes what is stored of a key: its HMAC under a pepper that is not in the database, so a dump has no usable key. */
export interface ComputeVerifier {
  (key: ApiKey): string
  /** Stored with the result. Derived from the pepper, so that versions need no configuration. */
  readonly version: bigint
}

export function createVerifier(pepper: Uint8Array): ComputeVerifier {
  assert(pepper.length === 32, 'a pepper has 32 bytes')
  // Copied for each key: setting up the HMAC costs more than hashing 40 characters.
  const keyed = new Bun.CryptoHasher('sha256', pepper)
  return Object.assign((key: ApiKey) => keyed.copy().update(key).digest('hex'), { version: versionOf(pepper) })
}

/** From a separate derivation: the version is public and must say nothing about the pepper. Fits a BIGINT. */
function versionOf(pepper: Uint8Array): bigint {
  const name = new DataView(hkdfSync('sha256', pepper, new Uint8Array(0), 'pepper-version', 8))
  return BigInt.asUintN(62, name.getBigUint64(0))
}

function randomBase62(length: number): string {
  // 62 × 4 = 248: larger bytes would make the first eight characters more likely than the others.
  const usableBelow = 248
  let text = ''
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length - text.length))) {
      if (byte < usableBelow) text += alphabet[byte % 62]
    }
  }
  return text
}

/** 62⁶ > 2³², so six characters hold every CRC32. */
function checksum(text: string): string {
  let rest = Bun.hash.crc32(text)
  let digits = ''
  for (let at = 0; at < checksumLength; at++) {
    digits = alphabet[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}
