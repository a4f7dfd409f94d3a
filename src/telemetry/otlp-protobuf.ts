// Traces in protobuf, from the JSON form that the payloads have: Phoenix takes nothing else (arize-phoenix 20.26, 2026-11).
// Field numbers: https://github.com/open-telemetry/opentelemetry-proto, trace/v1, resource/v1 and common/v1.

import { fieldOf, join, varint } from './otlp-attributes.ts'
import type { attributes, Span } from './otlp-payload.ts'

type Attributes = ReturnType<typeof attributes>

interface Traces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Attributes }
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string; readonly version: string }
      readonly spans: readonly Span[]
      readonly schemaUrl: string
    }[]
  }[]
}

export function encodeTraces({ resourceSpans }: Traces): Uint8Array {
  return join(
    resourceSpans.map(({ resource, scopeSpans }) =>
      message(1, [
        message(1, attributesOf(1, resource.attributes)),
        ...scopeSpans.map(({ scope, spans, schemaUrl }) =>
          message(2, [
            message(1, [text(1, scope.name), text(2, scope.version)]),
            ...spans.map(spanOf),
            text(3, schemaUrl),
          ]),
        ),
      ]),
    ),
  )
}

function spanOf(span: Span): Uint8Array {
  const { traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, status } = span
  return message(2, [
    fieldOf(1, Buffer.from(traceId, 'hex')),
    fieldOf(2, Buffer.from(spanId, 'hex')),
    ...(parentSpanId === undefined ? [] : [fieldOf(4, Buffer.from(parentSpanId, 'hex'))]),
    text(5, name),
    number(6, kind),
    fixed64(7, startTimeUnixNano),
    fixed64(8, endTimeUnixNano),
    ...attributesOf(9, span.attributes),
    message(15, status.code === undefined ? [] : [number(3, status.code)]),
  ])
}

function attributesOf(field: number, list: Attributes): readonly Uint8Array[] {
  return list.map(({ key, value }) => message(field, [text(1, key), fieldOf(2, attributeValue(value))]))
}

function attributeValue(value: Attributes[number]['value']): Uint8Array {
  if ('stringValue' in value) return text(1, value.stringValue)
  if ('boolValue' in value) return number(2, value.boolValue ? 1 : 0)
  if ('intValue' in value) return number(3, Number(value.intValue))
  const bytes = Buffer.alloc(9)
  bytes[0] = 4 * 8 + 1
  bytes.writeDoubleLE(value.doubleValue, 1)
  return bytes
}

function message(field: number, parts: readonly Uint8Array[]): Uint8Array {
  return fieldOf(field, join(parts))
}

const encoder = new TextEncoder()

function text(field: number, value: string): Uint8Array {
  return fieldOf(field, encoder.encode(value))
}

/** Not below zero. */
function number(field: number, value: number): Uint8Array {
  return join([varint(field * 8), varint(value)])
}

function fixed64(field: number, value: string): Uint8Array {
  const bytes = Buffer.alloc(9)
  bytes[0] = field * 8 + 1
  bytes.writeBigUInt64LE(BigInt(value), 1)
  return bytes
}
