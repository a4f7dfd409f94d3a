// The scanners of JSON bytes against JSON.parse, which is slow and known to be right.

import fc from 'fast-check'
import { utf8Text } from '../../src/wire/bytes.ts'
import { JsonEdits, JsonFault, type JsonNode, peekJson, readJson } from '../../src/wire/json.ts'
import { passSpace, passValue } from '../../src/wire/json-scan.ts'
import { JsonTextMeter } from '../../src/wire/json-text-meter.ts'
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

function checkRead(bytes: Uint8Array<ArrayBuffer>): void {
  const parsed = parse(bytes)
  const root = readJson(bytes)
  if (root instanceof JsonFault) {
    insist(root.offset >= 0 && root.offset <= bytes.length, 'a fault outside the body')
    insist(!(root.reason === 'syntax' && parsed), 'good JSON refused as bad')
    insist(!(root.reason === 'not-object' && isObject(parsed?.value)), 'an object refused as none')
    return
  }
  if (!parsed || !isObject(parsed.value)) throw new Error('members of what is no object')
  const { value } = parsed
  const members = root.members() ?? []
  insist(same(members.map(({ name }) => name).sort(), Object.keys(value).sort()), 'other names')
  for (const member of members) {
    insist(same(member.value(), value[member.name]), `another value of ${JSON.stringify(member.name)}`)
    insist(same(contentOf(member), value[member.name]), `another content of ${JSON.stringify(member.name)}`)
  }
  if (root.get('fuzzed')) return
  const edits = new JsonEdits(bytes)
  edits.add(root, 'fuzzed', '[7]')
  const [first, ...others] = members
  if (first) edits.remove(first)
  const expected = Object.fromEntries(others.map(({ name }) => [name, value[name]]))
  insist(same(parse(edits.apply())?.value, { ...expected, fuzzed: [7] }), 'a splice that is off')
}

/** Read level by level; where a name appears twice, as JSON.parse reads it. */
function contentOf(node: JsonNode): unknown {
  const members = node.members()
  if (members) return Object.fromEntries(members.map((member) => [member.name, contentOf(member)]))
  return node.elements()?.map(contentOf) ?? node.value()
}

const names = ['model', 'usage', 'messages']

function checkPeek(bytes: Uint8Array<ArrayBuffer>): void {
  const root = peekJson(bytes, 0, bytes.length)
  for (const { start, end } of root?.members() ?? []) {
    insist(start >= 0 && end > start && end <= bytes.length, 'a value outside')
  }
  const parsed = parse(bytes)
  if (parsed && isObject(parsed.value)) {
    insist(root !== undefined, 'an object that was not recognised')
    for (const name of names) {
      const expected = Object.hasOwn(parsed.value, name) ? parsed.value[name] : undefined
      insist(same(root?.get(name)?.value(), expected), `another ${name}`)
    }
  }
  const counted = countReads(bytes)
  passValue(counted.bytes, passSpace(bytes, 0, bytes.length), bytes.length)
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
  { name: 'json-read', shareInputs: 2_000, open: () => openBytes('json-read', checkRead) },
  { name: 'json-peek', shareInputs: 2_000, open: () => openBytes('json-peek', checkPeek) },
  { name: 'json-text-meter', shareInputs: 2_000, open: () => openBytes('json-text-meter', checkMeter) },
]
