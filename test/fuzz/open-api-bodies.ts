// Random request bodies made from an OpenAPI document: of the described shape, with some members hostile, missing or
// unknown.

import fc from 'fast-check'

type Json = Record<string, unknown>

export interface Operation {
  readonly method: string
  readonly path: string
  /** undefined = it takes no body. */
  readonly schema: Json | undefined
}

export function operationsOf(document: object): readonly Operation[] {
  const { paths } = document as { readonly paths: Record<string, Record<string, Json>> }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const { content } = objectOf(operation.requestBody)
      const { schema } = objectOf(objectOf(content)['application/json'])
      return { method: method.toUpperCase(), path, schema: schema === undefined ? undefined : objectOf(schema) }
    }),
  )
}

/** Values that have hurt somebody, as JSON text. */
const hostileJson = fc.constantFrom(
  ...[
    'null',
    'true',
    '0',
    '-1',
    '1e999',
    '-0',
    '9007199254740993',
    '0.1',
    '""',
    '" "',
    '[]',
    '{}',
    '"swordfish-0123456789"',
  ],
  ...['"-1.00"', '"1e5"', '"NaN"', '"0.0000000001"', '"99999999999999999999"', '"1.00 "', '"Infinity"', '"٣"'],
  ...['{"__proto__":{"polluted":true}}', '{"constructor":{"prototype":{"polluted":true}}}', '"\\u0000"', '"\\ud800"'],
  ...[
    '"\' OR 1=1 --"',
    '"<script>alert(1)</script>"',
    '"\\r\\nx: y"',
    '"../../etc/passwd"',
    '"http://169.254.169.254/"',
  ],
  ...['"%00"', '"2026-13-45T99:99:99Z"', '"0.0.0.0/0"', '"::/0"', '["*"]', '["__proto__"]', `"${'x'.repeat(5000)}"`],
  `${'['.repeat(500)}${']'.repeat(500)}`,
  `[${'"a",'.repeat(3000)}"a"]`,
)

const memberName = fc.constantFrom('id', 'balance', 'workspace_id', '__proto__', 'constructor', 'toString', '', 'nmae')

function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {}
}

function resolve(schema: Json, document: object): Json {
  if (typeof schema.$ref !== 'string') return schema
  const steps = schema.$ref.replace('#/', '').split('/')
  return objectOf(steps.reduce<unknown>((at, step) => objectOf(at)[decodeURIComponent(step)], document))
}

/** JSON text that fits the schema, more or less. */
function fitting(given: Json, document: object, depth: number): fc.Arbitrary<string> {
  const schema = resolve(given, document)
  const choices = (schema.anyOf ?? schema.oneOf) as readonly Json[] | undefined
  if (choices) return fc.oneof(...choices.map((choice) => fitting(choice, document, depth)))
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum.map((value) => JSON.stringify(value)))
  if (schema.type === 'object' && depth < 4) return fittingObject(schema, document, depth)
  if (schema.type === 'array' && depth < 4) {
    const item = fitting(objectOf(schema.items), document, depth + 1)
    return fc.array(item, { maxLength: 3 }).map((items) => `[${items.join(',')}]`)
  }
  if (schema.type === 'integer' || schema.type === 'number') return fc.integer({ min: -2, max: 1000 }).map(String)
  if (schema.type === 'boolean') return fc.constantFrom('true', 'false')
  const texts = ['a', 'fuzzed', '1.00', '0.05', '2030-01-01T00:00:00Z', 'acme', 'a/one', '10.0.0.0/8', 'https://x.test']
  return fc
    .oneof(fc.constantFrom(...texts), fc.string({ maxLength: 12, unit: 'binary' }))
    .map((text) => JSON.stringify(text))
}

/** Each member is present, missing, or of another type; sometimes an unknown one is added. */
function fittingObject(schema: Json, document: object, depth: number): fc.Arbitrary<string> {
  const members = Object.entries(objectOf(schema.properties)).map(([name, member]) =>
    fc
      .oneof(
        { weight: 6, arbitrary: fitting(objectOf(member), document, depth + 1) },
        { weight: 2, arbitrary: fc.constant(undefined) },
        { weight: 2, arbitrary: hostileJson },
      )
      .map((value) => (value === undefined ? undefined : `${JSON.stringify(name)}:${value}`)),
  )
  const unknown = fc.option(
    fc.tuple(memberName, hostileJson).map(([name, value]) => `${JSON.stringify(name)}:${value}`),
    { nil: undefined, freq: 6 },
  )
  return fc.tuple(...members, unknown).map((list) => `{${list.filter((member) => member !== undefined).join(',')}}`)
}

/** undefined = no body is sent. */
export function bodyOf({ schema }: Operation, document: object): fc.Arbitrary<string | undefined> {
  if (!schema) return fc.option(hostileJson, { nil: undefined })
  return fc.oneof(
    { weight: 12, arbitrary: fitting(schema, document, 0) },
    { weight: 2, arbitrary: hostileJson },
    { weight: 1, arbitrary: fc.constantFrom('', '{', '{"a":1', '\ufeff{}', 'null', '"', '{"name":"a","name":"b"}') },
    { weight: 1, arbitrary: fc.constant(undefined) },
  )
}
