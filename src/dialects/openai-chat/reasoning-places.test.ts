import { describe, expect, test } from 'bun:test'
import { placeReasoning, reasoningPlaces } from './reasoning-places.ts'

/** Blocks by letters: thinking, sealed, a text, a refusal, a call. */
const kinds = { T: 'thinking', S: 'sealed-thinking', x: 'text', r: 'refusal', c: 'tool-call' } as const
const numbered = (blocks: string): number[] =>
  reasoningPlaces([...blocks].map((letter) => kinds[letter as keyof typeof kinds]))

describe('the numbers', () => {
  // Worked out by hand: put all x as one and all r as one before all c, and count up to each T or S.
  const cases: [blocks: string, back: string, places: number[]][] = [
    ['Tx', 'Tx', [0]],
    ['TxTcTc', 'TxTcTc', [0, 2, 4]],
    ['TSTc', 'TSTc', [0, 1, 2]],
    // A text in two pieces is one block when it comes back.
    ['TxxTcTc', 'TxTcTc', [0, 2, 4]],
    ['TxTxTc', 'TxTTc', [0, 2, 3]],
    // What is said behind a call comes back before it.
    ['TcTxc', 'TxcTc', [0, 3]],
    ['TxTrTc', 'TxTrTc', [0, 2, 4]],
    ['TcTxrc', 'TxrcTc', [0, 4]],
    ['TcTc', 'TcTc', [0, 2]],
  ]
  test.each(cases)('%s comes back as %s', (blocks, back, places) => {
    expect(numbered(blocks)).toEqual(places)
    expect(places).toEqual([...back].flatMap((letter, at) => (letter === 'T' || letter === 'S' ? [at] : [])))
  })
})

describe('the places', () => {
  const placed = (numbers: readonly (number | undefined)[], blocks: string): string =>
    placeReasoning(
      numbers.map((place, i) => ({ block: 'ABC'[i], place })),
      [...blocks],
    ).join('')

  test('pitfall 72: are those the numbers tell', () => {
    expect(placed([0, 2, 4], 'x12')).toBe('AxB1C2')
    expect(placed([1, 3], '12')).toBe('1AB2')
    expect(placed([0, 3], 'x12')).toBe('Ax1B2')
  })

  test('are first for what is numbered one after another, all alike or not at all', () => {
    expect(placed([0, 1, 2], 'x1')).toBe('ABCx1')
    expect(placed([0, 0, 0], 'x1')).toBe('ABCx1')
    expect(placed([undefined, undefined], 'x1')).toBe('ABx1')
    expect(placed([-1], 'x')).toBe('Ax')
  })

  test('follow the numbers, not the order of the list', () => {
    expect(placed([2, 0], 'x1')).toBe('BxA1')
  })

  test('are never behind the last block, also where the numbers of another gateway or a lost text say so', () => {
    // The text at 1 did not come back.
    expect(placed([0, 2], '1')).toBe('AB1')
    expect(placed([0, 99], 'x1')).toBe('AxB1')
    expect(placed([0, 2], 'x')).toBe('ABx')
    expect(placed([3], '')).toBe('A')
  })
})
