// What a provider can do wrong in its words, in either dialect: text that never ends, ends twice or is no text, counts
// that cannot be, and names that JavaScript has plans for.

import { chunkedHead, forever, goodBody, head, mebibyte, type Outcome, respond, type Trick, type Turn } from './turn.ts'

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

const endless: readonly Trick[] = [
  {
    name: 'a line without an end',
    outcome: 'refused',
    growthMax: 260,
    async play(turn) {
      await chunkedHead(turn)
      if (turn.streams) await turn.reply.chunk('data: ')
      await forever(turn, 'x'.repeat(64 * 1024))
    },
  },
  {
    name: 'a record without an end',
    outcome: 'refused',
    growthMax: 260,
    async play(turn) {
      await chunkedHead(turn)
      await forever(turn, turn.streams ? `data: ${'x'.repeat(1000)}\n`.repeat(64) : `[${'1,'.repeat(1000)}`)
    },
  },
  {
    name: 'comments or white space without an end',
    outcome: 'refused',
    growthMax: 260,
    async play(turn) {
      await chunkedHead(turn)
      await forever(turn, turn.streams ? `: ${'x'.repeat(64 * 1024)}\n\n` : ' '.repeat(64 * 1024))
    },
  },
  {
    name: 'a 200 that is an error of 10 MiB',
    outcome: 'refused',
    growthMax: 120,
    play(turn) {
      const json = JSON.stringify({
        type: 'error',
        error: { type: 'server_error', message: 'x'.repeat(10 * mebibyte) },
      })
      return respond(turn, json, { 'content-type': 'application/json' })
    },
  },
  {
    name: 'a 400 whose text is 10 MiB',
    outcome: 'refused',
    play: ({ reply }) => reply.json(400, { error: { type: 'x', message: 'y'.repeat(10 * mebibyte) } }),
  },
  {
    name: 'a 500 without an end',
    outcome: 'refused',
    async play(turn) {
      await turn.reply.write(head(500, { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' }))
      await forever(turn, 'x'.repeat(64 * 1024))
    },
  },
]

const openArrays = '['.repeat(100_000)
const deep = openArrays + ']'.repeat(100_000)

const shapes: readonly Trick[] = [
  {
    name: 'JSON that is 100,000 levels deep beside the answer',
    outcome: 'legal',
    play: edited(/"model":"up"/, `"model":"up","deep":${deep}`),
  },
  {
    name: 'a text that is 100,000 levels deep',
    outcome: 'legal',
    play: edited('"hello"', deep),
  },
  {
    name: 'a 400 with details that are deep',
    outcome: 'refused',
    play: ({ reply }) =>
      reply.send(
        400,
        { 'content-type': 'application/json' },
        `{"error":{"type":"invalid_request_error","message":"no","details":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`,
      ),
  },
  {
    name: 'JSON that opens and never closes',
    outcome: 'refused',
    play: (turn) => respond(turn, turn.streams ? `data: ${openArrays}\n\n` : openArrays),
  },
  {
    name: 'a model that stands twice',
    outcome: 'answered',
    play: edited(/"model":"up"/, '"model":"up","model":"canary"'),
  },
  {
    name: 'a model that is an object',
    outcome: 'answered',
    play: edited(/"model":"up"/, '"model":{"__proto__":{"polluted":1}}'),
  },
  {
    name: '__proto__ beside the answer',
    outcome: 'answered',
    play: edited(/"model":"up"/, '"model":"up","__proto__":{"polluted":1}'),
  },
  {
    name: 'constructor.prototype beside the answer',
    outcome: 'answered',
    play: edited(/"model":"up"/, '"model":"up","constructor":{"prototype":{"polluted":1}}'),
  },
  {
    name: '__proto__ in the usage',
    outcome: 'answered',
    play: edited(/("usage":\{)/, '"usage":{"__proto__":{"polluted":1},'),
  },
  { name: 'a text that is a number', outcome: 'legal', play: edited('"hello"', '7') },
  { name: 'a text that is null', outcome: 'legal', play: edited('"hello"', 'null') },
  { name: 'a text that is an object', outcome: 'legal', play: edited('"hello"', '{"__proto__":{"polluted":1}}') },
  { name: 'an id of a mebibyte', outcome: 'legal', play: edited(/"id":"(c|msg_1)"/, `"id":"${'i'.repeat(900_000)}"`) },
  { name: 'a stop reason nobody knows', outcome: 'answered', play: edited(/"(stop|end_turn)"(?=[,}])/, '"__proto__"') },
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
  { name: 'a byte order mark in front', outcome: 'legal', play: (turn) => respond(turn, `\ufeff${goodBody(turn)}`) },
  { name: 'raw controls inside a string', outcome: 'legal', play: edited('hello', 'hel\0\x1blo') },
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

const streams: readonly Trick[] = [
  {
    name: 'events behind the end',
    outcome: 'answered',
    play: (turn) =>
      turn.streams
        ? stream(turn, goodBody(turn) + turn.words.says('canary-after') + turn.words.error + turn.words.ending)
        : respond(turn, turn.words.whole),
  },
  {
    name: 'more and more behind the end',
    outcome: 'answered',
    async play(turn) {
      if (!turn.streams) return respond(turn, turn.words.whole)
      await chunkedHead(turn)
      await turn.reply.chunk(goodBody(turn))
      await forever(turn, turn.words.says('x'.repeat(60_000)))
    },
  },
  {
    name: 'everything twice',
    outcome: 'legal',
    play: (turn) =>
      turn.streams ? stream(turn, turn.words.opening.repeat(3) + goodBody(turn)) : respond(turn, goodBody(turn)),
  },
  {
    name: 'ids and retry times for the client',
    outcome: 'answered',
    play: (turn) =>
      turn.streams
        ? stream(turn, goodBody(turn).replaceAll('data: ', 'id: canary-id\nretry: 1\ndata: '))
        : respond(turn, goodBody(turn)),
  },
  {
    name: '50,000 comments before the answer',
    outcome: 'answered',
    play: (turn) =>
      turn.streams ? stream(turn, ': canary\n\n'.repeat(50_000) + goodBody(turn)) : respond(turn, goodBody(turn)),
  },
  {
    name: 'an error event, then the answer all the same',
    outcome: ifStreamed('legal', 'answered'),
    play: (turn) =>
      turn.streams
        ? stream(turn, turn.words.opening + turn.words.says('hello') + turn.words.error + turn.words.ending)
        : respond(turn, goodBody(turn)),
  },
]

export const bodyTricks: readonly Trick[] = [...endless, ...shapes, ...texts, ...usages, ...streams]
