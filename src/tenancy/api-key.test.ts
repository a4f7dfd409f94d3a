import { expect, test } from 'bun:test'
import { createApiKey, createVerifier, hasApiKeyForm, lastFour } from './api-key.ts'

// Checksums and the HMAC worked out with Python's zlib and hmac.
const known = 'sk-tg-0123456789ABCDEFGHIJKLMNOPQR47EiTD'

test('the checksum covers the prefix and keeps leading zeros', () => {
  expect(hasApiKeyForm(known)).toBe(true)
  expect(hasApiKeyForm('sk-tg-aaaaaaaaaaaaaaaaaaaaaaaaaaaa3HQ6Rf')).toBe(true)
  expect(hasApiKeyForm('sk-tg-zzzzzzzzzzzzzzzzzzzzzzz151660005jL')).toBe(true)
})

test('every wrong, missing, added or swapped character is detected', () => {
  for (let at = 0; at < known.length; at++) {
    const other = known[at] === 'x' ? 'y' : 'x'
    expect(hasApiKeyForm(known.slice(0, at) + other + known.slice(at + 1))).toBe(false)
    expect(hasApiKeyForm(known.slice(0, at) + known.slice(at + 1))).toBe(false)
    expect(hasApiKeyForm(`${known.slice(0, at)}0${known.slice(at)}`)).toBe(false)
    const [left, right] = [known[at], known[at + 1]]
    if (right === undefined || left === right) continue
    expect(hasApiKeyForm(known.slice(0, at) + right + left + known.slice(at + 2))).toBe(false)
  }
})

test('texts of another form are not keys', () => {
  for (const text of ['', 'sk-tg-', 'sk-proj-abc', known.toUpperCase(), `${known}\n`, ` ${known}`, 'ä'.repeat(40)]) {
    expect(hasApiKeyForm(text)).toBe(false)
  }
})

test('creates distinct keys of the right form from the whole alphabet', () => {
  const keys = Array.from({ length: 1000 }, createApiKey)
  expect(keys.every((key) => hasApiKeyForm(key) && key.length === 40)).toBe(true)
  expect(new Set(keys).size).toBe(1000)
  // 28,000 draws: the chance that one of 62 characters is missing is 62 × (61/62)^28000, below 10^-195.
  expect(new Set(keys.flatMap((key) => [...key.slice(6, 34)])).size).toBe(62)
})

test('every character is equally likely', () => {
  const counts = new Map<string, number>()
  for (let n = 0; n < 5000; n++)
    for (const letter of createApiKey().slice(6, 34)) counts.set(letter, (counts.get(letter) ?? 0) + 1)
  const expected = (5000 * 28) / 62
  let chiSquare = 0
  for (const count of counts.values()) chiSquare += (count - expected) ** 2 / expected
  // 61 degrees of freedom: above 160 once in 10^10 runs. Plain `byte % 62` gives about 930.
  expect(chiSquare).toBeLessThan(160)
})

test('A2: the HMAC under the pepper is stored, and it is not a key', () => {
  const pepper = Uint8Array.from({ length: 32 }, (_, at) => at)
  const verifier = createVerifier(pepper)(known)
  expect(verifier).toBe('6e21d8b7982dc5c8b5ea9d4fd34a00b9fb545b600f393fe6810a922cab00bb26')
  expect(hasApiKeyForm(verifier)).toBe(false)
  expect(createVerifier(pepper.toReversed())(known)).not.toBe(verifier)
})

test('shows the last four characters', () => {
  expect(lastFour(known)).toBe('EiTD')
})
