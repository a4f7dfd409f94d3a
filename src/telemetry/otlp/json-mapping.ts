// The parts that every OTLP payload has, in the JSON that the protocol defines
// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): 64-bit integers are strings, ids are hexadecimal,
// enums are numbers.

export interface KeyValue {
  readonly key: string
  readonly value: AnyValue
}

export type AnyValue =
  | { readonly stringValue: string }
  | { readonly intValue: string }
  | { readonly doubleValue: number }
  | { readonly boolValue: boolean }

/** Who sends, the same in every payload. */
export interface Sender {
  readonly serviceName: string
  readonly version: string
  /** Tells replicas apart. */
  readonly instanceId: string
}

/** Attributes that are known; what is undefined or empty is left out. Counts are integers unless said otherwise. */
export class Attributes {
  readonly list: KeyValue[] = []

  text(key: string, value: string | undefined): this {
    if (value !== undefined && value !== '') this.list.push({ key, value: { stringValue: value } })
    return this
  }

  int(key: string, value: number | undefined): this {
    if (value !== undefined) this.list.push({ key, value: { intValue: String(value) } })
    return this
  }

  double(key: string, value: number | undefined): this {
    if (value !== undefined) this.list.push({ key, value: { doubleValue: value } })
    return this
  }

  bool(key: string, value: boolean): this {
    this.list.push({ key, value: { boolValue: value } })
    return this
  }
}

export function resourceOf({ serviceName, version, instanceId }: Sender) {
  const { list } = new Attributes()
    .text('service.name', serviceName)
    .text('service.version', version)
    .text('service.instance.id', instanceId)
  return { attributes: list }
}

export function scopeOf({ version }: Sender) {
  return { name: 'tollgate', version }
}

/** Epoch milliseconds, with fractions in the second part, as nanoseconds. */
export function unixNanos(epochMs: number, offsetMs = 0): string {
  return String(BigInt(epochMs) * 1_000_000n + BigInt(Math.round(offsetMs * 1_000_000)))
}
