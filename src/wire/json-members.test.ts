import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  insertMember,
  JsonFault,
  JsonMembers,
  JsonNode,
  jsonMembersMax,
  memberBoolean,
  memberKind,
  memberText,
  readJsonElements,
  readJsonEnds,
  readJsonMembers,
  readJsonValueMembers,
  spliceBytes,
} from './json.ts'

const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)
const text = (part: Uint8Array): string => new TextDecoder().decode(part)

function members(body: string | Uint8Array): JsonMembers {
  const read = readJsonMembers(typeof body === 'string' ? bytes(body) : body)
  if (read instanceof JsonFault) throw new Error(`${read.reason} at ${read.offset}: ${read.message}`)
  return read
}

function fault(body: string | Uint8Array): JsonFault {
  const read = readJsonMembers(typeof body === 'string' ? bytes(body) : body)
  if (read instanceof JsonFault) return read
  throw new Error(`accepted: ${read.list.map((member) => member.name).join()}`)
}

function member(body: string, name: string) {
  const found = members(body).find(name)
  if (found === undefined) throw new Error(`no ${name}`)
  return found
}

describe('the members of a document', () => {
  test('are given in order, with the byte offsets of name and value', () => {
    expect(members('{"a":1, "é" : [2,{"a":3}] ,"c":"}"}').list).toEqual([
      { name: 'a', start: 1, valueStart: 5, valueEnd: 6 },
      { name: 'é', start: 8, valueStart: 15, valueEnd: 26 },
      { name: 'c', start: 28, valueStart: 32, valueEnd: 35 },
    ])
  })

  test('are found by their decoded name', () => {
    const read = members('{"mod\\u0065l":"x"}')
    expect(read.find('model')?.valueStart).toBe(14)
    expect(read.find('mod\\u0065l')).toBeUndefined()
    expect(read.find('toString')).toBeUndefined()
  })

  test('may be none, with whitespace of every kind around', () => {
    const read = members(' \t\r\n{ \n} \t\r\n')
    expect(read.list).toEqual([])
    expect([read.start, read.end]).toEqual([4, 8])
  })

  test('are the same for any value of any document that JSON.parse reads', () => {
    const document = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 6 }))
    const indent = fc.constantFrom('', ' ', '\t', '\r\n  ')
    fc.assert(
      fc.property(document, indent, (value, space) => {
        const written = JSON.stringify(value, null, space)
        const parsed = JSON.parse(written)
        const body = bytes(written)
        const { list } = members(body)
        expect(list.map(({ name }) => name).sort()).toEqual(Object.keys(parsed).sort())
        for (const { name, start, valueStart, valueEnd } of list) {
          expect(JSON.parse(text(body.subarray(valueStart, valueEnd)))).toEqual(parsed[name])
          expect(text(body.subarray(start, valueStart)).trimEnd()).toBe(`${JSON.stringify(name)}:`)
        }
      }),
      { numRuns: 500 },
    )
  })

  test('have decoded names however they are escaped', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (name) => {
        const units = Array.from({ length: name.length }, (_, i) => name.charCodeAt(i))
        const escaped = units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
        expect(members(`{"${escaped}":0}`).list.map((found) => found.name)).toEqual([name])
      }),
    )
  })
})

describe('a document is refused', () => {
  const cases: [why: string, body: string, reason: JsonFault['reason'], offset: number][] = [
    ['when empty', '', 'syntax', 0],
    ['when only whitespace', ' \n', 'syntax', 2],
    ['with a byte order mark', '\ufeff{}', 'syntax', 0],
    ['when an array', '[1]', 'not-object', 0],
    ['when a string', ' "x"', 'not-object', 1],
    ['when null', 'null', 'not-object', 0],
    ['when cut in a name', '{"mod', 'syntax', 5],
    ['when cut behind a name', '{"a"', 'syntax', 4],
    ['when cut behind a colon', '{"a":', 'syntax', 5],
    ['when cut in a literal', '{"a":tru', 'syntax', 8],
    ['when cut in a number', '{"a":1.', 'syntax', 7],
    ['when cut in an escape', '{"a":"\\u12', 'syntax', 10],
    ['when cut behind a backslash', '{"a":"\\', 'syntax', 7],
    ['when cut behind a value', '{"a":1', 'syntax', 6],
    ['when cut behind a comma', '{"a":1,', 'syntax', 7],
    ['when cut in an array', '{"a":[1,', 'syntax', 8],
    ['with a trailing comma', '{"a":1,}', 'syntax', 7],
    ['with a leading comma', '{,"a":1}', 'syntax', 1],
    ['with a trailing comma in an array', '{"a":[1,]}', 'syntax', 8],
    ['with a trailing comma in an inner object', '{"a":{"b":1,}}', 'syntax', 12],
    ['without a colon', '{"a" 1}', 'syntax', 5],
    ['without a comma', '{"a":1 "b":2}', 'syntax', 7],
    ['with a bare name', '{a:1}', 'syntax', 1],
    ['with single quotes', "{'a':1}", 'syntax', 1],
    ['with a wrong closer', '{"a":[1}}', 'syntax', 7],
    ['with a second document', '{} {}', 'syntax', 3],
    ['with bytes behind it', '{"a":1}x', 'syntax', 7],
    ['with a comment', '{/**/}', 'syntax', 1],
    ['with a raw line feed in a string', '{"a":"x\ny"}', 'syntax', 7],
    ['with a raw NUL in a long string', `{"a":"${'x'.repeat(13)}\0"}`, 'syntax', 19],
    ['with an unknown escape', '{"a":"\\x"}', 'syntax', 7],
    ['with a bad hex digit', '{"a":"\\u00g0"}', 'syntax', 10],
    ['with NaN', '{"a":NaN}', 'syntax', 5],
    ['with a capital literal', '{"a":True}', 'syntax', 5],
    ['with a longer literal', '{"a":truey}', 'syntax', 9],
    ['with a leading zero', '{"a":01}', 'syntax', 6],
    ['with a leading plus', '{"a":+1}', 'syntax', 5],
    ['with a lone minus', '{"a":-}', 'syntax', 6],
    ['with a leading dot', '{"a":.5}', 'syntax', 5],
    ['with a trailing dot', '{"a":1.}', 'syntax', 7],
    ['with an empty exponent', '{"a":1e+}', 'syntax', 8],
    ['with a hexadecimal number', '{"a":0x1}', 'syntax', 6],
    ['with a name written twice', '{"model":1,"model":2}', 'duplicate', 11],
  ]
  test.each(cases)('%s', (_, body, reason, offset) => {
    const found = fault(body)
    expect([found.reason, found.offset]).toEqual([reason, offset])
  })

  test('with a sentence a person can use', () => {
    expect(fault('{"a":1').message).toBe('unexpected end of the body')
    expect(fault('{"model":1,"model":2}').message).toBe('`model` appears twice')
    expect(fault('{"a":[1}}').message).toBe('expected `,` or `]`')
  })

  test('when a name appears twice, once with escapes', () => {
    const found = fault('{"model":"cheap","mod\\u0065l":"dear"}')
    expect([found.reason, found.name, found.offset]).toEqual(['duplicate', 'model', 17])
  })

  test('not when a name appears twice in an inner object', () => {
    expect(members('{"a":{"b":1,"b":2}}').list).toHaveLength(1)
  })

  test('when it is not UTF-8, at the first bad byte', () => {
    const found = fault(new Uint8Array([...bytes('{"a":"'), 0xc3, 0x28, ...bytes('"}')]))
    expect([found.reason, found.offset]).toEqual(['utf8', 6])
  })

  test('with any control character at any place of a string, and with no other character', () => {
    for (let code = 0; code < 0x100; code++) {
      if (code === 0x22 || code === 0x5c) continue
      for (let before = 0; before < 12; before++) {
        const body = bytes(`{"a":"${'x'.repeat(before)}${String.fromCharCode(code)}yyyy"}`)
        const read = readJsonMembers(body)
        if (code >= 0x20) expect(read).toBeInstanceOf(JsonMembers)
        else expect(read).toMatchObject({ reason: 'syntax', offset: 6 + before })
      }
    }
  })

  test('when nested deeper than 64, counting the top-level object', () => {
    const nested = (levels: number): string => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    expect(members(nested(64)).list).toHaveLength(1)
    const found = fault(nested(65))
    expect([found.reason, found.offset]).toEqual(['depth', 5 + 63])
    expect(readJsonMembers(bytes(nested(3)), 2)).toBeInstanceOf(JsonFault)
    expect(readJsonMembers(bytes(nested(2)), 2)).toBeInstanceOf(JsonMembers)
  })

  test('when it has depth enough to break a recursive reader', () => {
    expect(fault(`{"a":${'['.repeat(1_000_000)}`).reason).toBe('depth')
  })

  test('when it has more members than anyone would send', () => {
    const many = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"${i}":0`).join()}}`
    expect(members(many(jsonMembersMax)).list).toHaveLength(jsonMembersMax)
    expect(fault(many(jsonMembersMax + 1)).reason).toBe('too-many')
  })
})

describe('a damaged document', () => {
  const piece = fc.oneof(
    fc.constantFrom(...'{}[],:"\\-+.0123456789eEtrufalsn \t\n\r'.split('')).map(bytes),
    fc.uint8Array({ minLength: 1, maxLength: 2 }),
  )
  const damage = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), cut: fc.nat(2), put: fc.option(piece) })

  /** The result of JSON.parse; undefined if it refuses the bytes or they are not UTF-8. */
  function oracle(body: Uint8Array): { value: unknown } | undefined {
    try {
      return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)) }
    } catch {
      return undefined
    }
  }

  test('is accepted exactly when JSON.parse accepts it, apart from the refusals of our own', () => {
    const document = fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 })
    fc.assert(
      fc.property(document, fc.array(damage, { minLength: 1, maxLength: 3 }), (value, damages) => {
        let body = bytes(JSON.stringify(value))
        for (const { at, cut, put } of damages) {
          const start = Math.floor(at * body.length)
          body = spliceBytes(body, [
            { start, end: Math.min(start + cut, body.length), bytes: put ?? new Uint8Array(0) },
          ])
        }
        const expected = oracle(body)
        const read = readJsonMembers(body)
        if (read instanceof JsonMembers) {
          expect(Object.keys(expected?.value as object).sort()).toEqual(read.list.map(({ name }) => name).sort())
        } else if (expected !== undefined) {
          expect(['duplicate', 'not-object']).toContain(read.reason)
          const isObject = typeof expected.value === 'object' && expected.value && !Array.isArray(expected.value)
          expect(read.reason === 'not-object').toBe(!isObject)
        }
      }),
      { numRuns: 5000 },
    )
  })

  test('is refused when cut anywhere', () => {
    const body = bytes('{"a":"x\\u00e9\\n","b":[true,false,null,-1.5e+3,{}],"ü":{"c":[[]]}}')
    for (let end = 0; end < body.length; end++) expect(fault(body.subarray(0, end)).reason).toMatch(/syntax|utf8/)
    expect(members(body).list).toHaveLength(3)
  })
})

test('the members of an inner object have offsets into the whole body', () => {
  const body = bytes('{"x":1,"stream_options": {"include_usage":true} }')
  const outer = members(body).find('stream_options')
  const inner = readJsonValueMembers(body, outer?.valueStart ?? 0, outer?.valueEnd ?? 0)
  expect(inner).toBeInstanceOf(JsonMembers)
  expect((inner as JsonMembers).list).toEqual([{ name: 'include_usage', start: 26, valueStart: 42, valueEnd: 46 }])
  const number = members(body).find('x')
  const none = readJsonValueMembers(body, number?.valueStart ?? 0, number?.valueEnd ?? 0)
  expect((none as JsonFault).reason).toBe('not-object')
})

test('a view into a larger buffer is read within its bounds', () => {
  const outer = bytes('xx{"a":"bcdefgh"}yy')
  expect(members(outer.subarray(2, 17)).list).toEqual([{ name: 'a', start: 1, valueStart: 5, valueEnd: 14 }])
  expect(fault(outer.subarray(2, 15)).offset).toBe(13)
})

describe('a value', () => {
  const body = '{"s":"a\\n\\u00e9","n":-1.5e3,"o":{},"a":[],"t":true,"f":false,"z":null}'

  test('has a kind', () => {
    const kinds = members(body).list.map((found) => memberKind(bytes(body), found))
    expect(kinds).toEqual(['string', 'number', 'object', 'array', 'true', 'false', 'null'])
  })

  test('is decoded where it is of the kind asked for, and undefined elsewhere', () => {
    expect(memberText(bytes(body), member(body, 's'))).toBe('a\né')
    expect(memberText(bytes(body), member(body, 'n'))).toBeUndefined()
    expect(memberText(bytes('{"s":""}'), member('{"s":""}', 's'))).toBe('')
    expect(memberBoolean(bytes(body), member(body, 't'))).toBe(true)
    expect(memberBoolean(bytes(body), member(body, 'f'))).toBe(false)
    expect(memberBoolean(bytes(body), member(body, 'z'))).toBeUndefined()
  })
})

describe('editing', () => {
  test('replaces, removes and inserts, and leaves every other byte', () => {
    const spliced = spliceBytes(bytes('0123456789'), [
      { start: 0, end: 0, bytes: bytes('<') },
      { start: 2, end: 4, bytes: bytes('long') },
      { start: 4, end: 4, bytes: bytes('|') },
      { start: 8, end: 10, bytes: bytes('') },
    ])
    expect(text(spliced)).toBe('<01long|4567')
    expect(text(spliceBytes(bytes('same'), []))).toBe('same')
  })

  test('asserts that edits are in order, apart, and inside', () => {
    const edit = (start: number, end: number) => ({ start, end, bytes: bytes('x') })
    expect(() => spliceBytes(bytes('0123'), [edit(2, 3), edit(0, 1)])).toThrow('assertion')
    expect(() => spliceBytes(bytes('0123'), [edit(0, 2), edit(1, 3)])).toThrow('assertion')
    expect(() => spliceBytes(bytes('0123'), [edit(2, 5)])).toThrow('assertion')
    expect(() => spliceBytes(bytes('0123'), [edit(3, 2)])).toThrow('assertion')
  })

  test('adds a member at the end, with a comma where one is needed', () => {
    const added = (body: string): string =>
      text(spliceBytes(bytes(body), [insertMember(bytes(body), members(body), 'max "n"', '42')]))
    expect(added('{"a":1 }\n')).toBe('{"a":1,"max \\"n\\"":42 }\n')
    expect(added(' { }')).toBe(' {"max \\"n\\"":42 }')
  })

  test('adds a member to an inner object', () => {
    const body = bytes('{"o":{"x":[1]}}')
    const inner = readJsonValueMembers(body, 5, 14) as JsonMembers
    expect(text(spliceBytes(body, [insertMember(body, inner, 'y', 'true')]))).toBe('{"o":{"x":[1],"y":true}}')
  })

  test('refuses to add a member that is there', () => {
    expect(() => insertMember(bytes('{"a":1}'), members('{"a":1}'), 'a', '2')).toThrow('assertion')
  })
})

test('every object and array is found, and none in a string', () => {
  const ends = readJsonEnds(bytes(' {"a[":[1,{"b":"\\"]}"}],"c\\\\":{}} '))
  expect([...ends.entries()].filter(([, end]) => end > 0)).toEqual([
    [1, 33],
    [7, 23],
    [10, 22],
    [30, 32],
  ])
})

/** The content of a document, read level by level. */
function contentOf(node: JsonNode): unknown {
  const elements = node.elements()
  if (elements) return elements.map(contentOf)
  const members = node.members()
  return members ? Object.fromEntries(members.map(([name, value]) => [name, contentOf(value)])) : JSON.parse(node.text)
}

test('a document read level by level is what JSON.parse makes of it', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(3), (text, spaces) => {
      const spaced = JSON.stringify(JSON.parse(text), null, spaces)
      expect(contentOf(JsonNode.of(spaced))).toEqual(JSON.parse(text))
    }),
  )
})

test('reading a level does not scan the levels below it again', () => {
  const text = '{"a":{"b":[{"c":"d"},1]}}'
  const body = bytes(text)
  const root = new JsonNode(body, { start: 0, end: body.length }, readJsonEnds(body))
  // A reader that skipped this would stop here.
  body.fill(0, text.indexOf('{"c"') + 1, text.indexOf(',1') - 1)
  const list = root.member('a')?.member('b')
  expect(list?.elements()?.map(({ span }) => span.end - span.start)).toEqual([9, 1])
  const plain = new JsonNode(body, { start: 0, end: body.length })
  expect(plain.member('a')).toBeUndefined()
})

test('a value is found by name and by place, with its text as written', () => {
  const body = new TextEncoder().encode('{"a": [ {"n":1.0} , "é" ],"b":null}')
  const members = readJsonMembers(body)
  if (members instanceof JsonFault) throw new Error('a good body')
  const root = JsonNode.root(body, members)
  expect(root.member('a')?.element(0)?.text).toBe('{"n":1.0}')
  expect(root.member('a')?.element(0)?.member('n')?.text).toBe('1.0')
  expect(root.member('a')?.element(1)?.text).toBe('"é"')
  expect(root.member('a')?.element(2)).toBeUndefined()
  expect(root.member('c')).toBeUndefined()
  expect(root.member('b')?.member('x')).toBeUndefined()
})

test('members and elements come in their order; a name that appears twice hides them all', () => {
  const node = JsonNode.of(' {"2":1,"1":[2,3]}')
  expect(node.members()?.map(([name, value]) => [name, value.text])).toEqual([
    ['2', '1'],
    ['1', '[2,3]'],
  ])
  expect(node.elements()).toBeUndefined()
  expect(
    node
      .member('1')
      ?.elements()
      ?.map(({ text }) => text),
  ).toEqual(['2', '3'])
  expect(JsonNode.of('{"a":1,"a":2}').members()).toBeUndefined()
  expect(JsonNode.of('[]').elements()).toEqual([])
})

test('the elements of any array are those that parsing it gives', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue({ maxDepth: 3 })), fc.constantFrom('', ' ', '\n'), (values, space) => {
      const text = `[${values.map((value) => space + JSON.stringify(value) + space).join(',')}${values.length ? '' : space}]`
      const body = new TextEncoder().encode(text)
      const found = readJsonElements(body, 0, body.length).map(({ start, end }) =>
        JSON.parse(new TextDecoder().decode(body.subarray(start, end))),
      )
      expect(found).toEqual(JSON.parse(text))
    }),
  )
})

test.each([1, 23, 24, 25, 40])('finds each of %i members, and refuses one that appears twice', (count) => {
  const written = Array.from({ length: count }, (_, at) => `"member${at}":${at}`)
  const body = `{${written.join()}}`
  const read = members(body)
  for (let at = 0; at < count; at++) {
    const found = read.find(`member${at}`)
    expect(body.slice(found?.valueStart, found?.valueEnd)).toBe(String(at))
  }
  expect(read.find(`member${count}`)).toBeUndefined()
  expect(fault(`{${[...written, '"member0":0'].join()}}`)).toMatchObject({ reason: 'duplicate', name: 'member0' })
})

test('tells names apart that are as long and begin and end alike, however often they are read', () => {
  for (let times = 0; times < 3; times++) {
    for (const name of ['model', 'moxel', 'mödel', 'm\\u006fdel', 'm\\"del']) {
      const [only] = members(`{"${name}":1}`).list
      expect(only?.name).toBe(JSON.parse(`"${name}"`))
    }
  }
})

test.each([23, 24, 4095, 4096, 4097, 9000])('refuses a control character behind %i bytes of a string', (length) => {
  const plain = 'x'.repeat(length)
  expect(member(`{"a":"${plain}"}`, 'a').valueEnd).toBe(length + 7)
  expect(fault(`{"a":"${plain}\u0001"}`)).toMatchObject({ reason: 'syntax', offset: length + 6 })
  expect(member(`{"a":"${plain}\\n\\u0041"}`, 'a').valueEnd).toBe(length + 15)
})
