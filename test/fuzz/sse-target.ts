// The SSE reader and splitter against a parser written after the standard's own steps, for any cut of any bytes.

import fc from 'fast-check'
import { type SseEvent, SseOverflow, SseReader, SseSplitter } from '../../src/wire/sse.ts'
import { streamCorpus, trouble } from './corpus.ts'
import { cutAt, cuts, damaged, utf8 } from './damage.ts'
import { type FuzzTarget, insist } from './target.ts'

const limits = { recordBytesMax: 2000 }

/**
 * HTML §9.2.6, but for a last event without a blank line, which we read too, and for a byte order mark, which we overlook
 * in front of every record and not only of the first.
 */
function eventsOf(bytes: Uint8Array): SseEvent[] {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  const events: SseEvent[] = []
  let data: string[] = []
  let event = ''
  const dispatch = (): void => {
    if (data.length > 0) events.push({ event, data: data.join('\n') })
    data = []
    event = ''
  }
  let isFirstLine = true
  for (const written of text.split(/\r\n|\r|\n/)) {
    const line = isFirstLine ? written.replace(/^\ufeff/, '') : written
    isFirstLine = written === ''
    if (line === '') dispatch()
    const [, name, value] = /^([^:]*)(?:: ?([\s\S]*))?$/.exec(line) ?? []
    if (name === 'data') data.push(value ?? '')
    if (name === 'event') event = value ?? ''
  }
  dispatch()
  return events
}

function read(pieces: readonly Uint8Array[]): SseEvent[] | 'overflow' {
  const reader = new SseReader(limits)
  try {
    return [...pieces.flatMap((piece) => reader.push(piece)), ...reader.end()]
  } catch (error) {
    if (error instanceof SseOverflow) return 'overflow'
    throw error
  }
}

function split(pieces: readonly Uint8Array[]): Uint8Array[] {
  const records: Uint8Array[] = []
  const splitter = new SseSplitter()
  for (const piece of pieces) splitter.push(piece, (record) => records.push(record))
  splitter.end((record) => records.push(record))
  return records
}

/** Whether a record may be over the limit; whether it is found to be so depends on the cut. */
function isLong(bytes: Uint8Array): boolean {
  return bytes.length > limits.recordBytesMax
}

function check(bytes: Uint8Array<ArrayBuffer>, places: readonly number[]): void {
  const pieces = cutAt(bytes, places)
  const records = split(pieces)
  insist(Buffer.concat(records).equals(bytes), 'the records put together are not the stream')
  insist(
    records.every((record) => record.length > 0),
    'an empty record',
  )
  const events = read(pieces)
  if (events === 'overflow') return insist(isLong(bytes), 'an overflow of what is short')
  insist(JSON.stringify(events) === JSON.stringify(eventsOf(bytes)), 'other events than the standard has')
  const whole = read([bytes])
  if (whole !== 'overflow') insist(JSON.stringify(events) === JSON.stringify(whole), 'the cut changes what is read')
}

const short = [
  'data: a\n\n',
  'event: e\r\ndata: b\r\n\r\n',
  ': c\n\ndata\ndata:\rdata: d\r\r',
  '\ufeffdata: e\n\n',
].map(utf8)

export const sseTarget: FuzzTarget = {
  name: 'sse',
  shareInputs: 1_000,
  open() {
    const corpus = [...trouble('sse'), ...short, ...short, ...Object.values(streamCorpus).flat()]
    return {
      property: fc.property(damaged(corpus), cuts, check),
      examples: corpus.map((bytes) => [new Uint8Array(bytes), [0x8000]]),
    }
  },
}
