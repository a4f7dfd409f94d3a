// Adds attributes to telemetry in OTLP: in protobuf without decoding the rest, and in JSON. In protobuf metrics, logs and traces have the same frame: a
// request has groups (field 1), a group has a resource (field 1), and a resource has attributes (field 1), which are a name
// (field 1) and a value (field 2) with a text (field 1). https://opentelemetry.io/docs/specs/otlp/

/** Names that begin with it are ours: what a client sends under one is left out. */
export const ownPrefix = 'tollgate.'

/** undefined = the bytes are no protobuf message. */
export function addResourceAttributes(
  body: Uint8Array,
  attributes: Readonly<Record<string, string>>,
): Uint8Array | undefined {
  const added = Object.entries(attributes).map(([name, value]) => {
    return fieldOf(1, join([fieldOf(1, encoder.encode(name)), fieldOf(2, fieldOf(1, encoder.encode(value)))]))
  })
  const inResource = (resource: Uint8Array): Uint8Array => {
    const kept = fieldsOf(resource).filter(({ number, content }) => !(number === 1 && isOurs(content)))
    return join([...kept.map(({ whole }) => whole), ...added])
  }
  const inGroup = (group: Uint8Array): Uint8Array => {
    const fields = fieldsOf(group)
    const rest = fields.filter(({ number }) => number !== 1).map(({ whole }) => whole)
    // A message that is there in parts is one message.
    const resource = join(fields.filter(({ number }) => number === 1).map(({ content }) => content))
    return join([fieldOf(1, inResource(resource)), ...rest])
  }
  try {
    return join(
      fieldsOf(body).map(({ number, content, whole }) => (number === 1 ? fieldOf(1, inGroup(content)) : whole)),
    )
  } catch (thrown) {
    if (thrown instanceof Malformed) return undefined
    throw thrown
  }
}

/** The groups of metrics, logs and traces in JSON. */
const groupNames = ['resourceMetrics', 'resourceLogs', 'resourceSpans'] as const

/** undefined = the bytes are no OTLP message in JSON. Whole numbers of 64 bits are strings there, so nothing is rounded. */
export function addJsonResourceAttributes(
  body: Uint8Array,
  attributes: Readonly<Record<string, string>>,
): object | undefined {
  const added = Object.entries(attributes).map(([key, stringValue]) => ({ key, value: { stringValue } }))
  const inGroup = (group: unknown) => {
    const resource = objectOf(objectOf(group).resource ?? {})
    const kept = arrayOf(resource.attributes ?? []).filter((attribute) => {
      const { key } = objectOf(attribute)
      return !(typeof key === 'string' && key.startsWith(ownPrefix))
    })
    return { ...objectOf(group), resource: { ...resource, attributes: [...kept, ...added] } }
  }
  try {
    const message: Record<string, unknown> = { ...objectOf(JSON.parse(decoder.decode(body))) }
    for (const name of groupNames) if (message[name] !== undefined) message[name] = arrayOf(message[name]).map(inGroup)
    return message
  } catch (thrown) {
    // What JSON.parse throws: text that is no JSON, and JSON that is too deep.
    if (thrown instanceof Malformed || thrown instanceof SyntaxError || thrown instanceof RangeError) return undefined
    throw thrown
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Malformed()
  return value as Readonly<Record<string, unknown>>
}

function arrayOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Malformed()
  return value
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

class Malformed extends Error {}

interface Field {
  readonly number: number
  /** The value of a field with a length; empty for the others. */
  readonly content: Uint8Array
  /** With its tag. */
  readonly whole: Uint8Array
}

function isOurs(attribute: Uint8Array): boolean {
  return fieldsOf(attribute).some(
    ({ number, content }) => number === 1 && decoder.decode(content).startsWith(ownPrefix),
  )
}

function fieldsOf(message: Uint8Array): readonly Field[] {
  const fields: Field[] = []
  let at = 0
  const readVarint = (): number => {
    let value = 0
    for (let shift = 0; shift < 64; shift += 7) {
      const byte = message[at++]
      if (byte === undefined) throw new Malformed()
      value += (byte & 127) * 2 ** shift
      if (byte < 128) return value
    }
    throw new Malformed()
  }
  /** By the wire type: a number, 8 bytes, bytes with a length before them, and 4 bytes. The others are not used any more. */
  const lengthOf = (wireType: number): number | undefined => {
    if (wireType === 0) {
      readVarint()
      return 0
    }
    if (wireType === 1) return 8
    if (wireType === 5) return 4
    return wireType === 2 ? readVarint() : undefined
  }
  while (at < message.length) {
    const start = at
    const tag = readVarint()
    const [number, wireType] = [Math.floor(tag / 8), tag % 8]
    const length = lengthOf(wireType)
    if (length === undefined || number === 0 || length > message.length - at) throw new Malformed()
    const content = message.subarray(at, at + length)
    at += length
    fields.push({ number, content: wireType === 2 ? content : nothing, whole: message.subarray(start, at) })
  }
  return fields
}

const nothing = new Uint8Array(0)

export function fieldOf(number: number, content: Uint8Array): Uint8Array {
  return join([varint(number * 8 + 2), varint(content.length), content])
}

export function varint(value: number): Uint8Array {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Uint8Array.of(...bytes, rest)
    bytes.push((rest % 128) + 128)
  }
}

export function join(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts)
}
