import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { countTokens, splitFragments, splitWords, takeTokens } from './tokens.ts'

describe('counting tokens', () => {
  test.each([
    ['', 0],
    [' \n\t ', 0],
    ['hello from the other side of the gate', 8],
    ['Hello, world!', 4],
    // 12 letters are one token, the 13th begins another.
    ['abcdefghijkl', 1],
    ['abcdefghijklm', 2],
    // Up to four signs in a row are one token: {" type ":" object "}
    ['{"type":"object"}', 5],
    ['!!!!!', 2],
    ['héllo wörld', 2],
    ['👍🏽 ok', 2],
  ])('%j is %d', (text, tokens) => {
    expect(countTokens(text)).toBe(tokens)
  })

  test('takes the beginning of a text, and the whole of one that fits', () => {
    expect(takeTokens('one two, three', 3)).toBe('one two,')
    expect(takeTokens('one two ', 2)).toBe('one two ')
    expect(takeTokens('one two', 0)).toBe('')
  })

  test('a taken beginning has exactly as many tokens as were asked for', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), fc.nat(20), (text, max) => {
        expect(countTokens(takeTokens(text, max))).toBe(Math.min(max, countTokens(text)))
      }),
    )
  })
})

describe('splitting for a stream', () => {
  test('puts whitespace before the word it precedes and trailing whitespace behind the last', () => {
    expect(splitWords('one two  three\n')).toEqual(['one', ' two', '  three\n'])
    expect(splitWords('  ')).toEqual(['  '])
  })

  test('loses nothing and cuts no character in two', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 80 }), (text) => {
        for (const parts of [splitWords(text), splitFragments(text)]) {
          expect(parts.join('')).toBe(text)
          expect(parts.every((part) => part.isWellFormed() || !text.isWellFormed())).toBe(true)
        }
      }),
    )
  })

  test('arguments come in several fragments, even the shortest', () => {
    expect(splitFragments('{}')).toEqual(['{', '}'])
    expect(splitFragments('{"city":"sandbox"}').length).toBeGreaterThan(2)
  })
})
