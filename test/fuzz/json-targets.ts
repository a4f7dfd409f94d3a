// The scanners of JSON bytes against JSON.parse, which is slow and known to be right.

import fc from 'fast-check'
import { utf8Text } from '../../src/wire/bytes.ts'
import {
  insertMember,
  JsonFault,
  JsonMembers,
  JsonSpans,
  JsonTextMeter,
  readJsonMembers,
  spliceBytes,
} from '../../src/wire/json.ts'
import { replyCorpus, trouble } from './corpus.ts'
import { countReads, readsAllowed } from './counted-bytes.ts'
import { anyJson, damaged } from './damage.ts'
import { chatRequests, messagesRequests } from './requests.ts'
import { type FuzzTarget, insist, type OpenTarget } from './target.ts'

type Parsed = { readonly value: unknown } | undefined

/** undefined = no UTF-8, or no JSON. */
function parse(bytes: Uint8Array): Parsed {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

function openBytes(name: string, check: (bytes: Uint8Array<ArrayBuffer>) => void): OpenTarget {
  const corpus = [
    ...trouble(name),
    ...chatRequests,
    ...messagesRequests,
    ...replyCorpus['openai-chat'],
    ...replyCorpus['anthropic-messages'],
  ]
  return {
    property: fc.property(fc.oneof(damaged(corpus), anyJson), check),
    examples: corpus.map((bytes) => [new Uint8Array(bytes)]),
  }
}

function checkMembers(bytes: Uint8Array<ArrayBuffer>): void {
  const parsed = parse(bytes)
  const result = readJsonMembers(bytes)
  if (result instanceof JsonMembers) {
    if (!parsed || !isObject(parsed.value)) throw new Error('members of what is no object')
    const { value } = parsed
    insist(same(result.list.map(({ name }) => name).sort(), Object.keys(value).sort()), 'other names')
    for (const { name, valueStart, valueEnd } of result.list) {
      const member: unknown = JSON.parse(utf8Text(bytes, valueStart, valueEnd))
      insist(same(member, value[name]), `another value of ${JSON.stringify(name)}`)
    }
    if (result.find('fuzzed')) return
    const spliced = spliceBytes(bytes, [insertMember(bytes, result, 'fuzzed', '[7]')])
    insist(same(parse(spliced)?.value, { ...value, fuzzed: [7] }) || '__proto__' in value, 'a splice that is off')
    return
  }
  insist(result.offset >= 0 && result.offset <= bytes.length, 'a fault outside the body')
  insist(!(result.reason === 'syntax' && parsed), 'good JSON refused as bad')
  insist(!(result.reason === 'not-object' && isObject(parsed?.value)), 'an object refused as none')
  insist(result instanceof JsonFault, 'neither members nor a fault')
}

const spans = new JsonSpans(['model', 'usage', 'messages'])

function checkSpans(bytes: Uint8Array<ArrayBuffer>): void {
  const found = spans.read(bytes, 0, bytes.length)
  const places = Object.entries(spans.of).map(([name, { start, end }]) => ({ name, start, end }))
  for (const { start, end } of places) {
    insist((start === -1 && end === -1) || (start >= 0 && end > start && end <= bytes.length), 'a span outside')
    insist(found || start === -1, 'a member of what is no object')
  }
  const parsed = parse(bytes)
  // Behind the object it does not look, and a name with escapes it does not know.
  if (parsed && isObject(parsed.value) && !utf8Text(bytes, 0, bytes.length).includes('\\u')) {
    insist(found, 'an object that was not recognised')
    for (const { name, start, end } of places) {
      const value: unknown = start < 0 ? undefined : JSON.parse(utf8Text(bytes, start, end))
      const expected = Object.hasOwn(parsed.value, name) ? parsed.value[name] : undefined
      insist(same(value, expected), `another ${name}`)
    }
  }
  const counted = countReads(bytes)
  spans.read(counted.bytes, 0, bytes.length)
  insist(counted.reads() <= readsAllowed(bytes.length), `${counted.reads()} looks at ${bytes.length} bytes`)
}

const meter = new JsonTextMeter(['text', 'content', 'arguments'])

/** Bytes of the strings under the meter's names, by the slow way. */
function textBytesIn(value: unknown): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, element) => sum + textBytesIn(element), 0)
  if (!isObject(value)) return 0
  return Object.entries(value).reduce((sum, [name, member]) => {
    const isCounted = typeof member === 'string' && ['text', 'content', 'arguments'].includes(name)
    return sum + (isCounted ? Buffer.byteLength(member) : textBytesIn(member))
  }, 0)
}

function checkMeter(bytes: Uint8Array<ArrayBuffer>): void {
  const count = meter.count(bytes, 0, bytes.length)
  insist(Number.isSafeInteger(count) && count >= 0 && count <= bytes.length, `${count} of ${bytes.length} bytes`)
  const parsed = parse(bytes)
  // Names that appear twice are lost in JSON.parse, and so are escapes of half a character.
  const isPlain = parsed && same(parse(Buffer.from(JSON.stringify(parsed.value)))?.value, parsed.value)
  const text = utf8Text(bytes, 0, bytes.length)
  if (isPlain && !text.includes('\\u') && hasNoTwins(bytes)) {
    insist(count === textBytesIn(parsed.value), `${count} bytes of text instead of ${textBytesIn(parsed.value)}`)
  }
  const counted = countReads(bytes)
  meter.count(counted.bytes, 0, bytes.length)
  insist(counted.reads() <= readsAllowed(bytes.length), `${counted.reads()} looks at ${bytes.length} bytes`)
}

/** Whether no object has a name twice: then writing it again loses no name. */
function hasNoTwins(bytes: Uint8Array): boolean {
  const colons = (json: string): number => json.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').split(':').length
  const text = utf8Text(bytes, 0, bytes.length)
  return colons(text) === colons(JSON.stringify(JSON.parse(text)))
}

export const jsonTargets: readonly FuzzTarget[] = [
  { name: 'json-members', shareInputs: 6_000, open: () => openBytes('json-members', checkMembers) },
  { name: 'json-spans', shareInputs: 2_000, open: () => openBytes('json-spans', checkSpans) },
  { name: 'json-text-meter', shareInputs: 2_000, open: () => openBytes('json-text-meter', checkMeter) },
]
