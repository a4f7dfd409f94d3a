// AES-256-GCM over texts for the database: base64url of nonce (12 bytes), ciphertext, tag (16 bytes). The binding is
// authenticated and not stored: whoever opens must know what it was sealed for. Knows nothing of what it encrypts.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { assert } from '../../kernel/assert.ts'

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
