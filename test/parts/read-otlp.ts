// Reads the spans of traces in protobuf, by the field numbers of opentelemetry-proto. Shares no code with what writes them.

export interface ReadSpan {
  readonly traceId: string
  readonly parentSpanId: string
  readonly name: string
  readonly attributes: Readonly<Record<string, unknown>>
}

interface Field {
  readonly number: number
  readonly bytes: Buffer
  readonly value: bigint
}

function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = []
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++]
      if (byte === undefined) throw new Error('the message ends too early')
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }
  while (at < message.length) {
    const tag = Number(varint())
    const wireType = tag & 7
    const value = wireType === 0 ? varint() : 0n
    const length = wireType === 0 ? 0 : wireType === 1 ? 8 : Number(varint())
    fields.push({ number: tag >> 3, value, bytes: message.subarray(at, at + length) })
    at += length
  }
  if (at !== message.length) throw new Error('the message ends too early')
  return fields
}

const all = (message: Buffer, number: number) => fieldsOf(message).filter((field) => field.number === number)
const first = (message: Buffer, number: number) => all(message, number)[0]?.bytes ?? Buffer.alloc(0)

export function readSpans(body: Uint8Array): readonly ReadSpan[] {
  const scopes = all(Buffer.from(body), 1).flatMap(({ bytes }) => all(bytes, 2))
  return scopes
    .flatMap(({ bytes }) => all(bytes, 2))
    .map(({ bytes: span }) => ({
      traceId: first(span, 1).toString('hex'),
      parentSpanId: first(span, 4).toString('hex'),
      name: first(span, 5).toString(),
      attributes: Object.fromEntries(
        all(span, 9).map(({ bytes }) => [first(bytes, 1).toString(), attributeValue(first(bytes, 2))]),
      ),
    }))
}

/** A whole number is a bigint, as opposed to a double. */
function attributeValue(message: Buffer): unknown {
  const [field] = fieldsOf(message)
  if (field?.number === 1) return field.bytes.toString()
  if (field?.number === 2) return field.value === 1n
  return field?.number === 4 ? field.bytes.readDoubleLE() : field?.value
}
