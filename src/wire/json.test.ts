import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { JsonEdits, JsonFault, JsonNode, jsonMembersMax, peekJson, readJson } from './json.ts'
import { readJsonEnds } from './json-scan.ts'

const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)
const text = (part: Uint8Array): string => new TextDecoder().decode(part)

function root(body: string | Uint8Array): JsonNode {
  const read = readJson(typeof body === 'string' ? bytes(body) : body)
  if (read instanceof JsonFault) throw new Error(`${read.reason} at ${read.offset}: ${read.message}`)
  return read
}

function fault(body: string | Uint8Array): JsonFault {
  const read = readJson(typeof body === 'string' ? bytes(body) : body)
  if (read instanceof JsonFault) return read
  throw new Error(
    `accepted: ${read
      .members()
      ?.map((member) => member.name)
      .join()}`,
  )
}

function member(node: JsonNode, name: string): JsonNode {
  const found = node.get(name)
  if (found === undefined) throw new Error(`no ${name}`)
  return found
}

/** Where the members of an object are. */
const places = (node: JsonNode) =>
  node.members()?.map(({ name, nameStart, start, end }) => ({ name, nameStart, start, end }))

describe('the members of a document', () => {
  test('are given in order, with the byte offsets of name and value', () => {
    expect(places(root('{"a":1, "é" : [2,{"a":3}] ,"c":"}"}'))).toEqual([
      { name: 'a', nameStart: 1, start: 5, end: 6 },
      { name: 'é', nameStart: 8, start: 15, end: 26 },
      { name: 'c', nameStart: 28, start: 32, end: 35 },
    ])
  })

  test('are found by their decoded name', () => {
    const read = root('{"mod\\u0065l":"x"}')
    expect(read.get('model')?.start).toBe(14)
    expect(read.get('mod\\u0065l')).toBeUndefined()
    expect(read.get('toString')).toBeUndefined()
  })

  test('may be none, with whitespace of every kind around', () => {
    const read = root(' \t\r\n{ \n} \t\r\n')
    expect(read.members()).toEqual([])
    expect(read.isEmpty).toBe(true)
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
        const list = root(body).members() ?? []
        expect(list.map(({ name }) => name).sort()).toEqual(Object.keys(parsed).sort())
        for (const found of list) {
          expect(JSON.parse(found.text)).toEqual(parsed[found.name])
          expect(found.value()).toEqual(parsed[found.name])
          const name = text(body.subarray(found.nameStart, found.start))
          expect(name.trimEnd()).toBe(`${JSON.stringify(found.name)}:`)
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
        expect(
          root(`{"${escaped}":0}`)
            .members()
            ?.map((found) => found.name),
        ).toEqual([name])
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
    expect(root('{"a":{"b":1,"b":2}}').members()).toHaveLength(1)
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
        const read = readJson(body)
        if (code >= 0x20) expect(read).toBeInstanceOf(JsonNode)
        else expect(read).toMatchObject({ reason: 'syntax', offset: 6 + before })
      }
    }
  })

  test('when nested deeper than 64, counting the top-level object', () => {
    const nested = (levels: number): string => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    expect(root(nested(64)).members()).toHaveLength(1)
    const found = fault(nested(65))
    expect([found.reason, found.offset]).toEqual(['depth', 5 + 63])
  })

  test('when it has depth enough to break a recursive reader', () => {
    expect(fault(`{"a":${'['.repeat(1_000_000)}`).reason).toBe('depth')
  })

  test('when it has more members than anyone would send', () => {
    const many = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"${i}":0`).join()}}`
    expect(root(many(jsonMembersMax)).members()).toHaveLength(jsonMembersMax)
    expect(fault(many(jsonMembersMax + 1)).reason).toBe('too-many')
    expect(JsonNode.of(many(jsonMembersMax + 1)).members()).toBeUndefined()
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
          body = new Uint8Array([...body.subarray(0, start), ...(put ?? []), ...body.subarray(start + cut)])
        }
        const expected = oracle(body)
        const read = readJson(body)
        if (read instanceof JsonNode) {
          const names = read.members()?.map(({ name }) => name)
          expect(Object.keys(expected?.value as object).sort()).toEqual(names?.sort() ?? [])
        } else if (expected !== undefined) {
          expect(['duplicate', 'not-object']).toContain(read.reason)
          const isObject = typeof expected.value === 'object' && expected.value && !Array.isArray(expected.value)
          expect(read.reason === 'not-object').toBe(!isObject)
        }
      }),
      { numRuns: 1500 },
    )
  })

  test('is refused when cut anywhere', () => {
    const body = bytes('{"a":"x\\u00e9\\n","b":[true,false,null,-1.5e+3,{}],"ü":{"c":[[]]}}')
    for (let end = 0; end < body.length; end++) expect(fault(body.subarray(0, end)).reason).toMatch(/syntax|utf8/)
    expect(root(body).members()).toHaveLength(3)
  })
})

test('the members of an inner object have offsets into the whole body', () => {
  const read = root('{"x":1,"stream_options": {"include_usage":true} }')
  expect(places(member(read, 'stream_options'))).toEqual([{ name: 'include_usage', nameStart: 26, start: 42, end: 46 }])
  expect(member(read, 'x').members()).toBeUndefined()
  expect(member(read, 'x').fault).toBeUndefined()
})

test('an inner object with a name that appears twice says so', () => {
  const inner = member(root('{"o":{"a":1,"b":2,"a":3}}'), 'o')
  expect(inner.members()).toBeUndefined()
  expect(inner.get('b')).toBeUndefined()
  expect(inner.fault).toMatchObject({ reason: 'duplicate', name: 'a', message: '`a` appears twice', offset: 18 })
})

test('a view into a larger buffer is read within its bounds', () => {
  const outer = bytes('xx{"a":"bcdefgh"}yy')
  expect(places(root(outer.subarray(2, 17)))).toEqual([{ name: 'a', nameStart: 1, start: 5, end: 14 }])
  expect(fault(outer.subarray(2, 15)).offset).toBe(13)
})

describe('a value', () => {
  const read = root('{"s":"a\\n\\u00e9","n":-1.5e3,"o":{},"a":[ ],"t":true,"f":false,"z":null,"l":[0]}')

  test('has a kind', () => {
    const kinds = read.members()?.map(({ kind }) => kind)
    expect(kinds).toEqual(['string', 'number', 'object', 'array', 'true', 'false', 'null', 'array'])
  })

  test('is decoded where it is of the kind asked for, and undefined elsewhere', () => {
    expect(member(read, 's').string).toBe('a\né')
    expect(member(read, 'n').string).toBeUndefined()
    expect(member(root('{"s":""}'), 's').string).toBe('')
  })

  test('is what JSON.parse makes of it', () => {
    const values = read.members()?.map((each) => each.value())
    expect(values).toEqual(['a\né', -1500, {}, [], true, false, null, [0]])
  })

  test('may be empty inside', () => {
    expect(['o', 'a', 'l'].map((name) => member(read, name).isEmpty)).toEqual([true, true, false])
  })

  test('includes words of its own bytes only', () => {
    const list = member(root('{"x":"before","l":["inside"],"y":"behind"}'), 'l')
    const has = (word: string) => list.includes(bytes(word))
    expect(['"inside"', 'before', 'behind', '],'].map(has)).toEqual([true, false, false, false])
  })
})

describe('editing', () => {
  const edited = (body: string, edit: (edits: JsonEdits, node: JsonNode) => void): string => {
    const edits = new JsonEdits(bytes(body))
    edit(edits, root(body))
    return text(edits.apply())
  }

  test('replaces, renames, removes and adds in any order, and leaves every other byte', () => {
    const body = '{ "a" : 1.0,"b":[1, 2 ,3] , "c":{"x":"é"},\t"d":null }\n'
    const result = edited(body, (edits, node) => {
      edits.add(node, 'new', '[]')
      edits.remove(member(node, 'd'))
      edits.set(member(member(node, 'c'), 'x'), '"ü"')
      edits.put(node, 'top', bytes('true'), 'first')
      edits.put(node, 'a', bytes('7'))
      edits.rename(member(node, 'a'), 'long "name"')
      const second = member(node, 'b').at(1)
      if (second) edits.remove(second)
    })
    expect(result).toBe('{"top":true, "long \\"name\\"":7,"b":[1, 3] , "c":{"x":"ü"},"new":[] }\n')
  })

  test('without edits returns the same bytes', () => {
    expect(edited('{"same":1 }', (edits) => expect(edits.isEmpty).toBe(true))).toBe('{"same":1 }')
  })

  test('asserts that edits do not overlap, and are of this document', () => {
    const body = '{"a":{"b":1}}'
    const inBoth = (edits: JsonEdits, node: JsonNode) => {
      edits.set(member(node, 'a'), '0')
      edits.set(member(member(node, 'a'), 'b'), '0')
    }
    expect(() => edited(body, inBoth)).toThrow('assertion')
    expect(() => edited(body, (edits) => edits.set(member(root(`${' '.repeat(20)}${body}`), 'a'), '0'))).toThrow(
      'assertion',
    )
  })

  test('adds members at the end, with a comma where one is needed', () => {
    const added = (body: string): string =>
      edited(body, (edits, node) => {
        edits.add(node, 'max "n"', '42')
        edits.add(node, 'b', '{}')
      })
    expect(added('{"a":1 }\n')).toBe('{"a":1,"max \\"n\\"":42,"b":{} }\n')
    expect(added(' { }')).toBe(' {"max \\"n\\"":42,"b":{} }')
  })

  test('adds an element before another one, which may be removed', () => {
    const added = (edits: JsonEdits, node: JsonNode) => {
      const [first, , third] = member(node, 'l').elements() ?? []
      if (first) edits.addBefore(first, '{}')
      if (third) edits.addBefore(third, '7')
      if (third) edits.remove(third)
    }
    expect(edited('{"l":[ 1, 2 , 3 ,4]}', added)).toBe('{"l":[ {},1, 2 , 7,4]}')
  })

  test('adds a member to an inner object', () => {
    const add = (edits: JsonEdits, node: JsonNode) => edits.add(member(node, 'o'), 'y', 'true')
    expect(edited('{"o":{"x":[1]}}', add)).toBe('{"o":{"x":[1],"y":true}}')
  })

  test('puts a member in the place of the one that is there', () => {
    expect(edited('{"a":1}', (edits, node) => edits.put(node, 'a', '2'))).toBe('{"a":2}')
  })

  test('removes and adds any members and elements of any document', () => {
    const document = fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 6 })
    const picks = fc.infiniteStream(fc.boolean())
    const space = fc.constantFrom('', ' ', '\n')
    fc.assert(
      fc.property(document, picks, space, fc.nat(2), fc.nat(2), (value, removes, indent, atStart, atEnd) => {
        const body = JSON.stringify({ list: Object.values(value), map: value }, null, indent)
        const expected = JSON.parse(body)
        const result = edited(body, (edits, node) => {
          const kept: JsonNode[] = []
          const choose = (each: JsonNode) => (removes.next().value ? edits.remove(each) : kept.push(each))
          const [list, map] = [member(node, 'list'), member(node, 'map')]
          list.elements()?.forEach(choose)
          expected.list = kept.splice(0).map((each) => each.value())
          map.members()?.forEach(choose)
          for (let i = 0; i < atStart; i++) edits.add(map, `long first ${i}`, '1', 'first')
          for (let i = 0; i < atEnd; i++) edits.add(map, `long last ${i}`, '2')
          const entries = kept.map((each) => [each.name, each.value()] as const)
          const first = Array.from({ length: atStart }, (_, i) => [`long first ${i}`, 1] as const)
          const last = Array.from({ length: atEnd }, (_, i) => [`long last ${i}`, 2] as const)
          expected.map = Object.fromEntries([...first, ...entries, ...last])
        })
        expect(JSON.stringify(JSON.parse(result))).toBe(JSON.stringify(expected))
      }),
      { numRuns: 500 },
    )
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
  return members ? Object.fromEntries(members.map((each) => [each.name, contentOf(each)])) : JSON.parse(node.text)
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
  const read = (ends?: Uint32Array): JsonNode => {
    const data = bytes(text)
    // A reader that did not skip this would stop here.
    data.fill(0x22, text.indexOf('{"c"') + 1, text.indexOf(',1') - 2)
    return new JsonNode(ends ? { bytes: data, ends } : { bytes: data }, 0, data.length)
  }
  const list = read(readJsonEnds(bytes(text)))
    .get('a')
    ?.get('b')
  expect(list?.elements()?.map(({ start, end }) => end - start)).toEqual([9, 1])
  expect(read().get('a')).toBeUndefined()
})

test('a value is found by name and by place, with its text as written', () => {
  const read = root('{"a": [ {"n":1.0} , "é" ],"b":null}')
  expect(read.get('a')?.at(0)?.text).toBe('{"n":1.0}')
  expect(read.get('a')?.at(0)?.get('n')?.text).toBe('1.0')
  expect(read.get('a')?.at(1)?.text).toBe('"é"')
  expect(read.get('a')?.at(2)).toBeUndefined()
  expect(read.get('b')?.at(0)).toBeUndefined()
  expect(read.get('c')).toBeUndefined()
  expect(read.get('b')?.get('x')).toBeUndefined()
})

test('members and elements come in their order; a name that appears twice hides them all', () => {
  const node = JsonNode.of(' {"2":1,"1":[2,3]}')
  expect(node.members()?.map(({ name, text }) => [name, text])).toEqual([
    ['2', '1'],
    ['1', '[2,3]'],
  ])
  expect(node.elements()).toBeUndefined()
  const inner = node.get('1')?.elements()
  expect(inner?.map(({ text }) => text)).toEqual(['2', '3'])
  expect(JsonNode.of('{"a":1,"a":2}').members()).toBeUndefined()
  expect(JsonNode.of('[]').elements()).toEqual([])
})

test('the elements of any array are those that parsing it gives, in whichever order they are read', () => {
  const values = fc.array(fc.jsonValue({ maxDepth: 3 }))
  fc.assert(
    fc.property(values, fc.constantFrom('', ' ', '\n'), fc.nat(8), (values, space, first) => {
      const text = `[${values.map((value) => space + JSON.stringify(value) + space).join(',')}${values.length ? '' : space}]`
      const list = JsonNode.of(text)
      expect(list.at(first)?.value()).toEqual(JSON.parse(text)[first])
      expect(list.elements()?.map((each) => each.value())).toEqual(JSON.parse(text))
    }),
  )
})

test.each([1, 23, 24, 25, 40])('finds each of %i members, and refuses one that appears twice', (count) => {
  const written = Array.from({ length: count }, (_, at) => `"member${at}":${at}`)
  const body = `{${written.join()}}`
  const read = root(body)
  for (let at = 0; at < count; at++) expect(read.get(`member${at}`)?.text).toBe(String(at))
  expect(read.get(`member${count}`)).toBeUndefined()
  expect(fault(`{${[...written, '"member0":0'].join()}}`)).toMatchObject({ reason: 'duplicate', name: 'member0' })
})

test('tells names apart that are as long and begin and end alike, however often they are read', () => {
  for (let times = 0; times < 3; times++) {
    for (const name of ['model', 'moxel', 'mödel', 'm\\u006fdel', 'm\\"del']) {
      const [only] = root(`{"${name}":1}`).members() ?? []
      expect(only?.name).toBe(JSON.parse(`"${name}"`))
    }
  }
})

test.each([23, 24, 4095, 4096, 4097, 9000])('refuses a control character behind %i bytes of a string', (length) => {
  const plain = 'x'.repeat(length)
  expect(member(root(`{"a":"${plain}"}`), 'a').end).toBe(length + 7)
  expect(fault(`{"a":"${plain}\u0001"}`)).toMatchObject({ reason: 'syntax', offset: length + 6 })
  expect(member(root(`{"a":"${plain}\\n\\u0041"}`), 'a').end).toBe(length + 15)
})

const names = ['model', 'usage', 'choices', 'error'] as const

/** The raw text of each member found; undefined where there is none. */
function found(data: Uint8Array, start = 0, end = data.length): Record<string, string | undefined> | false {
  const read = peekJson(data, start, end)
  return read ? Object.fromEntries(names.map((name) => [name, read.get(name)?.text])) : false
}

describe('peeking at a passing object', () => {
  test('finds members in a chat chunk', () => {
    const chunk =
      '{"id":"c-1","created":17,"model":"m-1","choices":[{"delta":{"content":"}\\"{\\\\"},"usage":7}],"usage":null}'
    expect(found(bytes(chunk))).toEqual({
      model: '"m-1"',
      choices: '[{"delta":{"content":"}\\"{\\\\"},"usage":7}]',
      usage: 'null',
      error: undefined,
    })
  })

  test('finds members with whitespace in every place', () => {
    const spaced = '\t{ "usage" :\r\n{ "a" : 1 } , "model"\n: 12 , "error":true }\n'
    expect(found(bytes(spaced))).toEqual({ usage: '{ "a" : 1 }', model: '12', error: 'true', choices: undefined })
  })

  test('finds members inside a larger buffer', () => {
    const data = bytes('data: {"model":"é"}\n\n')
    expect(found(data, 6, data.length - 2)).toMatchObject({ model: '"é"' })
  })

  test('takes the last member where a name appears twice', () => {
    expect(found(bytes('{"model":1,"model":2}'))).toMatchObject({ model: '2' })
  })

  test('takes nothing from names that only begin alike, or from inner objects', () => {
    const nothing = { model: undefined, usage: undefined, choices: undefined, error: undefined }
    expect(found(bytes('{"mode":1,"models":2,"x":{"model":3},"":4}'))).toEqual(nothing)
    expect(found(bytes('{}'))).toEqual(nothing)
  })

  test.each([
    '',
    '[DONE]',
    '[1]',
    '"x"',
    '{',
    '{"a',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":"\\"}',
    '{"a":[}',
    '{a:1}',
  ])('finds no object in %p', (text) => {
    expect(found(bytes(text))).toBe(false)
  })

  test('reads nothing behind the end', () => {
    expect(found(bytes('{"model":1}'), 0, 10)).toBe(false)
    expect(found(bytes('{"model":"abc"}'), 0, 13)).toBe(false)
  })

  test('finds members behind strings of any length, wherever their escapes stand', () => {
    const unit = fc.constantFrom('a', 'b', '"', '\\', '\n', 'é', 'long enough to be searched for its end, '.repeat(2))
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 12 }), (units) => {
        const text = units.join('')
        const data = bytes(JSON.stringify({ x: { [text]: [text] }, model: text, usage: 1 }))
        expect(found(data)).toMatchObject({ model: JSON.stringify(text), usage: '1' })
        // The quote that ends it lies behind the end.
        expect(found(data, 0, data.length - ',"usage":1}'.length - 1)).toBe(false)
      }),
      { numRuns: 500 },
    )
  })

  test('finds what JSON.parse would give, in any document', () => {
    const key = fc.oneof(fc.constantFrom(...names), fc.string({ unit: 'grapheme' }))
    fc.assert(
      fc.property(fc.dictionary(key, fc.jsonValue({ maxDepth: 5 })), fc.constantFrom('', ' ', '\n'), (value, space) => {
        const written = JSON.stringify(value, null, space)
        const parsed = JSON.parse(written)
        const read = found(bytes(written))
        if (read === false) throw new Error('not read')
        for (const name of names) {
          const raw = read[name]
          expect(Object.hasOwn(parsed, name)).toBe(raw !== undefined)
          if (raw !== undefined) expect(JSON.parse(raw)).toEqual(parsed[name])
        }
      }),
      { numRuns: 500 },
    )
  })

  test('never loops or throws on any bytes', () => {
    const alphabet = fc.constantFrom(...bytes('{}[]",:\\ am1'))
    fc.assert(
      fc.property(fc.array(alphabet, { maxLength: 40 }), (soup) => {
        const data = new Uint8Array([...bytes('{"a'), ...soup])
        const read = peekJson(data, 0, data.length)
        for (const each of read?.members() ?? []) {
          each.members()
          each.elements()
          each.value()
          expect(each.end).toBeGreaterThan(each.start)
        }
      }),
      { numRuns: 800 },
    )
  })

  test('recognises names that are written with escapes, and survives bad ones', () => {
    expect(found(bytes('{"mod\\u0065l":1,"us\\age":2}'))).toMatchObject({ model: '1', usage: undefined })
  })

  test('keeps the ends of values apart from what follows the object', () => {
    const data = bytes(' {"usage":{"a":1} } , "model":2}')
    const read = peekJson(data, 0, data.length)
    expect([read?.start, read?.end]).toEqual([1, 19])
    expect(read?.get('model')).toBeUndefined()
  })

  test('reads inner objects in the same way', () => {
    const data = bytes('{"usage":{"a":1,"a":2,"b":"\\x"}}')
    const usage = peekJson(data, 0, data.length)?.get('usage')
    expect(usage?.get('a')?.text).toBe('2')
    expect(usage?.get('b')?.string).toBe('\\x')
    expect(usage?.get('b')?.value()).toBeUndefined()
  })
})
