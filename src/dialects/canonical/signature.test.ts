import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isOwnSignature, issuerName, readSignature, writeSignature } from './signature.ts'

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

test.each([
  ['gpt-5.6', 'gpt-5.6-2026-07-09'],
  ['openai/gpt-5.6', 'gpt-5.6'],
  ['kimi-k2-0905', 'kimi-k2'],
  ['Qwen/Qwen3-235B:free', 'qwen3-235b'],
  ['claude-opus-5-5-20261014', 'claude-opus-5-5'],
  ['mistral-small-2603', 'mistral-small-latest'],
])('%s and %s are one family', (one, other) => {
  expect(issuerName('acme', 'openai-chat', one)).toBe(issuerName('acme', 'openai-chat', other))
})

test.each([
  ['gpt-5.6', 'gpt-5.5'],
  ['kimi-k2', 'kimi-k3'],
  ['deepseek-v4-pro', 'deepseek-v4-flash'],
])('pitfall 79: %s and %s are not', (one, other) => {
  expect(issuerName('acme', 'openai-chat', one)).not.toBe(issuerName('acme', 'openai-chat', other))
})

test('two hosts of a model, and two of its dialects, are different issuers', () => {
  const names = [
    issuerName('acme', 'openai-chat', 'm'),
    issuerName('best', 'openai-chat', 'm'),
    issuerName('acme', 'openai-responses', 'm'),
  ]
  expect(new Set(names).size).toBe(3)
})
