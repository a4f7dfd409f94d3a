// Faults in a provider's content, in either dialect: text that never ends, ends twice or is no text, counts
// that cannot be, and names that JavaScript has plans for.

import {
  chunkedHead,
  forever,
  goodBody,
  head,
  mebibyte,
  type Outcome,
  respond,
  type Trick,
  type Turn,
  trick,
} from './turn.ts'

/** Sends records as a stream; where none was asked for, `whole`, or what the records would amount to. */
async function stream(turn: Turn, records: string | Uint8Array): Promise<void> {
  await chunkedHead(turn)
  await turn.reply.chunk(records)
  await turn.reply.finish()
}

/** The good answer with one piece of its JSON text replaced, and so in a stream as in a whole. */
const edited =
  (from: string | RegExp, to: string): Trick['play'] =>
  (turn) =>
    respond(
      turn,
      goodBody(turn).replace(from, () => to),
    )

const ifStreamed =
  (streamed: Outcome, whole: Outcome): Trick['outcome'] =>
  ({ streamsUpstream }) =>
    streamsUpstream ? streamed : whole

/** Chunks of it without an end; the first may differ. */
const endlessly = (name: string, pieceOf: (turn: Turn) => string, firstOf = pieceOf): Trick => ({
  ...trick(name, 'refused', async (turn) => {
    await chunkedHead(turn)
    await turn.reply.chunk(firstOf(turn))
    await forever(turn, pieceOf(turn))
  }),
  growthMax: 260,
})
const filler = 'x'.repeat(64 * 1024)

const endless: readonly Trick[] = [
  endlessly(
    'a line without an end',
    () => filler,
    ({ streams }) => (streams ? 'data: ' : filler),
  ),
  endlessly('a record without an end', ({ streams }) =>
    streams ? `data: ${'x'.repeat(1000)}\n`.repeat(64) : `[${'1,'.repeat(1000)}`,
  ),
  endlessly('comments or white space without an end', ({ streams }) =>
    streams ? `: ${filler}\n\n` : ' '.repeat(64 * 1024),
  ),
  {
    ...trick('a 200 that is an error of 10 MiB', 'refused', (turn) => {
      const error = { type: 'server_error', message: 'x'.repeat(10 * mebibyte) }
      return respond(turn, JSON.stringify({ type: 'error', error }), { 'content-type': 'application/json' })
    }),
    growthMax: 120,
  },
  trick('a 400 whose text is 10 MiB', 'refused', ({ reply }) =>
    reply.json(400, { error: { type: 'x', message: 'y'.repeat(10 * mebibyte) } }),
  ),
  trick('a 500 without an end', 'refused', async (turn) => {
    await turn.reply.write(head(500, { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' }))
    await forever(turn, filler)
  }),
]

const openArrays = '['.repeat(100_000)
const deep = openArrays + ']'.repeat(100_000)

const shapes: readonly Trick[] = [
  trick(
    'JSON that is 100,000 levels deep beside the answer',
    'legal',
    edited(/"model":"up"/, `"model":"up","deep":${deep}`),
  ),
  trick('a text that is 100,000 levels deep', 'legal', edited('"hello"', deep)),
  trick('a 400 with details that are deep', 'refused', ({ reply }) =>
    reply.send(
      400,
      { 'content-type': 'application/json' },
      `{"error":{"type":"invalid_request_error","message":"no","details":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`,
    ),
  ),
  trick('JSON that opens and never closes', 'refused', (turn) =>
    respond(turn, turn.streams ? `data: ${openArrays}\n\n` : openArrays),
  ),
  trick('a model that appears twice', 'answered', edited(/"model":"up"/, '"model":"up","model":"canary"')),
  trick('a model that is an object', 'answered', edited(/"model":"up"/, '"model":{"__proto__":{"polluted":1}}')),
  trick('__proto__ beside the answer', 'answered', edited(/"model":"up"/, '"model":"up","__proto__":{"polluted":1}')),
  trick(
    'constructor.prototype beside the answer',
    'answered',
    edited(/"model":"up"/, '"model":"up","constructor":{"prototype":{"polluted":1}}'),
  ),
  trick('__proto__ in the usage', 'answered', edited(/("usage":\{)/, '"usage":{"__proto__":{"polluted":1},')),
  trick('a text that is a number', 'legal', edited('"hello"', '7')),
  trick('a text that is null', 'legal', edited('"hello"', 'null')),
  trick('a text that is an object', 'legal', edited('"hello"', '{"__proto__":{"polluted":1}}')),
  trick('an id of a mebibyte', 'legal', edited(/"id":"(c|msg_1)"/, `"id":"${'i'.repeat(900_000)}"`)),
  trick('an unknown stop reason', 'answered', edited(/"(stop|end_turn)"(?=[,}])/, '"__proto__"')),
]

const text = (name: string, written: string | Uint8Array): Trick => ({
  name,
  outcome: 'answered',
  play(turn) {
    const [before = '', after = ''] = goodBody(turn).split('hello')
    return respond(turn, Buffer.concat([Buffer.from(`${before}hello`), Buffer.from(written), Buffer.from(after)]))
  },
})

const texts: readonly Trick[] = [
  text('invalid UTF-8 in the text', Uint8Array.of(0xff, 0xc0, 0x80, 0xed, 0xa0, 0x80, 0xf0, 0x9f)),
  text('half a surrogate pair in the text', '\\ud800'),
  text('the wrong half of a pair in the text', '\\udc00x'),
  text('NUL and controls in the text', '\\u0000\\u001b[2J\\u0007'),
  text('line separators in the text', '\u2028\u2029\u0085'),
  text('what looks like the end in the text', '\\n\\ndata: [DONE]\\n\\nevent: message_stop\\n\\n'),
  trick('a byte order mark in front', 'legal', (turn) => respond(turn, `\ufeff${goodBody(turn)}`)),
  trick('raw controls inside a string', 'legal', edited('hello', 'hel\0\x1blo')),
]

/** In the place of every count, in both dialects' words. */
const usages: readonly Trick[] = [
  ['negative', '-5'],
  ['very negative', '-1e308'],
  ['huge', '1e308'],
  ['infinite', '1e999'],
  ['beyond 2⁵³', '9007199254740993'],
  ['fractional', '2.5'],
  ['text', '"7"'],
  ['boolean', 'true'],
  ['lists', '[7]'],
  ['objects', '{"valueOf":7}'],
  ['NaN', 'NaN'],
].map(([name, value]) => ({
  name: `counts that are ${name}`,
  // NaN is no JSON: a record that has it is left out.
  outcome: name === 'NaN' ? 'legal' : 'answered',
  play: (turn) =>
    respond(turn, goodBody(turn).replaceAll(/("(?:prompt|completion|total|input|output)_tokens"):\d+/g, `$1:${value}`)),
}))

/** The good answer where no stream was requested, and these records where one was. */
const streamed = (name: string, records: (turn: Turn) => string, outcome: Trick['outcome'] = 'answered'): Trick =>
  trick(name, outcome, (turn) => (turn.streams ? stream(turn, records(turn)) : respond(turn, goodBody(turn))))

const streams: readonly Trick[] = [
  streamed(
    'events behind the end',
    (turn) => goodBody(turn) + turn.words.says('canary-after') + turn.words.error + turn.words.ending,
  ),
  trick('more and more behind the end', 'answered', async (turn) => {
    if (!turn.streams) return respond(turn, turn.words.whole)
    await chunkedHead(turn)
    await turn.reply.chunk(goodBody(turn))
    await forever(turn, turn.words.says('x'.repeat(60_000)))
  }),
  streamed('everything twice', (turn) => turn.words.opening.repeat(3) + goodBody(turn), 'legal'),
  streamed('ids and retry times for the client', (turn) =>
    goodBody(turn).replaceAll('data: ', 'id: canary-id\nretry: 1\ndata: '),
  ),
  streamed('50,000 comments before the answer', (turn) => ': canary\n\n'.repeat(50_000) + goodBody(turn)),
  streamed(
    'an error event, then the answer all the same',
    ({ words }) => words.opening + words.says('hello') + words.error + words.ending,
    ifStreamed('legal', 'answered'),
  ),
]

export const bodyTricks: readonly Trick[] = [...endless, ...shapes, ...texts, ...usages, ...streams]
