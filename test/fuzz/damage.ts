// Random inputs that are nearly right: something from a corpus with pieces cut out, put in, repeated or turned, and the
// places where a network may cut it. Nearly right gets further into a parser than noise does.

import fc from 'fast-check'

const encoder = new TextEncoder()
export const utf8 = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text)

/** Pieces that mean something to JSON, SSE, UTF-8, HTTP or JavaScript. */
export const fragments: readonly Uint8Array[] = [
  ...['"', '{', '}', '[', ']', ',', ':', '\\', '\\u', '\\ud800', '\\"', '\0', '\r', '\n', '\r\n', '\n\n', '\r\r', ' '],
  ...[
    'data:',
    'data: ',
    '\ndata: ',
    'event: ',
    'id: x\n',
    'retry: 1\n',
    ': c\n',
    'data: [DONE]\n\n',
    '\n\ndata: {}\n\n',
  ],
  ...['null', 'true', '-1', '-0', '1e999', '-1e999', '0.5', '9007199254740993', '1e308', '""', '[]', '{}', 'NaN'],
  ...['"__proto__":', '"constructor":', '"prototype":', '"toString"', '{"__proto__":{"polluted":1}}', '"error":{},'],
  ...[
    '"usage":null',
    '"choices":[]',
    '"type":"error"',
    '"index":-1',
    '"index":1e9',
    '"id":null',
    '"model":"a","model":"b"',
  ],
  ...['\ufeff', '\u2028', '\u{1f600}', 'é', '[[[[[[[[[[[[[[[[', '{"a":{"a":{"a":{"a":', '"'.repeat(9), '\\'.repeat(9)],
].map(utf8)

/** Halves of characters, forbidden bytes and longer forms than needed. */
const badUtf8: readonly Uint8Array[] = [
  [0xff],
  [0xc0, 0x80],
  [0xed, 0xa0, 0x80],
  [0xf0, 0x9f],
  [0x80],
  [0xfe, 0xff],
].map((bytes) => Uint8Array.from(bytes))

interface Edit {
  readonly at: number
  readonly drop: number
  readonly insert: Uint8Array
  readonly times: number
}

/** Places are parts of 2¹⁶, so that they fall anywhere in a long input as in a short one. */
const place = fc.nat(0xffff)
const edit: fc.Arbitrary<Edit> = fc.record({
  at: place,
  drop: fc.oneof({ weight: 4, arbitrary: fc.nat(4) }, fc.nat(200)),
  insert: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...fragments) },
    { weight: 1, arbitrary: fc.constantFrom(...badUtf8) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 4 }) },
    { weight: 2, arbitrary: fc.constant(new Uint8Array(0)) },
  ),
  times: fc.oneof({ weight: 9, arbitrary: fc.constant(1) }, fc.nat(70)),
})

function apply(input: Uint8Array, { at, drop, insert, times }: Edit): Uint8Array {
  const start = Math.floor((at / 0x10000) * (input.length + 1))
  const inserted = times === 1 ? [insert] : Array.from({ length: times }, () => insert)
  return Buffer.concat([input.subarray(0, start), ...inserted, input.subarray(start + drop)])
}

/** Something of the corpus with up to four edits. */
export function damaged(corpus: readonly Uint8Array[]): fc.Arbitrary<Uint8Array<ArrayBuffer>> {
  return fc
    .tuple(fc.nat(corpus.length - 1), fc.array(edit, { maxLength: 4 }))
    .map(([at, edits]) => new Uint8Array(edits.reduce(apply, corpus[at] ?? new Uint8Array(0))))
}

/** JSON of any kind, damaged or not. */
export const anyJson: fc.Arbitrary<Uint8Array<ArrayBuffer>> = fc
  .tuple(fc.json({ maxDepth: 4, stringUnit: 'binary' }), fc.array(edit, { maxLength: 2 }))
  .map(([json, edits]) => new Uint8Array(edits.reduce(apply, utf8(json))))

/** Up to five places where a stream arrives in pieces, as parts of 2¹⁶. */
export const cuts: fc.Arbitrary<readonly number[]> = fc.array(place, { maxLength: 5 })

export function cutAt(input: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = places.map((part) => Math.floor((part / 0x10000) * (input.length + 1))).sort((a, b) => a - b)
  return [...ends, input.length].map((end, at) => input.subarray(at === 0 ? 0 : ends[at - 1], end))
}
