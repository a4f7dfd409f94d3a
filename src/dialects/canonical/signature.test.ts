import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isOwnSignature, readSignature, writeSignature } from './signature.ts'

test('a signature gives back the issuer and the blob, and is one word', () => {
  fc.assert(
    fc.property(fc.string(), fc.option(fc.string(), { nil: undefined }), (issuer, blob) => {
      const signature = writeSignature({ issuer, blob })
      expect(signature).toMatch(/^tg1\.[A-Za-z0-9_-]+$/)
      expect(isOwnSignature(signature)).toBe(true)
      expect(readSignature(signature)).toEqual({ issuer, blob })
    }),
  )
})

test('a foreign or damaged signature is none of ours', () => {
  const array = Buffer.from('[1]').toString('base64url')
  for (const signature of [
    '',
    'EqoB',
    'tg1.',
    'tg1.%%',
    `tg1.${array}`,
    `x${writeSignature({ issuer: 'a', blob: 'b' })}`,
  ]) {
    expect(readSignature(signature)).toBeUndefined()
  }
})
