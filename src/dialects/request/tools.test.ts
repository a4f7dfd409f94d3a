import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { assistant, call, result, system, user } from '../../../test/parts/translation.ts'
import { Failure } from '../../kernel/failure.ts'
import type { Turn } from '../canonical/conversation.ts'
import { readRequest, WarningList } from './fields.ts'
import { ArgumentNames, pairTools, ToolIds, ToolNames } from './tools.ts'

const rule = { pattern: /^[A-Za-z0-9_-]+$/, max: 40 }

/** Calls as `id`, results as `=id`, in the order of the turns. */
function paired(...turns: Turn[]): string[] | Failure {
  const list = readRequest(() => pairTools(turns, rule, new WarningList()))
  if (list instanceof Failure) return list
  return list.flatMap(({ blocks }) =>
    blocks.flatMap((block) =>
      block.kind === 'tool-call' ? block.id : block.kind === 'tool-result' ? `=${block.callId}` : [],
    ),
  )
}

test('vector 6: a call without a result is refused by its id', () => {
  const failure = paired(user('u'), { ...assistant(call('a'), call('b')), pointer: '/messages/1' }, user(result('a')))
  expect(failure).toBeInstanceOf(Failure)
  expect((failure as Failure).message).toContain('`b`')
  expect((failure as Failure).facts.param).toBe('messages[1]')
})

test('vector 7: a result without a call is refused by its id', () => {
  const failure = paired(user('u'), assistant('a'), { ...user(result('x')), pointer: '/messages/2' })
  expect((failure as Failure).message).toContain('`x`')
  expect((failure as Failure).facts.param).toBe('messages[2]')
})

test('a result that comes after the next answer is too late', () => {
  expect(paired(user('u'), assistant(call('a')), user('v'), assistant('b'), user(result('a')))).toBeInstanceOf(Failure)
})

test('pitfall 36: results belong to the calls still open, not to every call with that id', () => {
  expect(
    paired(
      user('u'),
      assistant(call('0'), call('0')),
      user(result('0'), result('0')),
      assistant(call('0')),
      user(result('0')),
    ),
  ).toEqual(['0', '0_1', '=0', '=0_1', '0_3', '=0_3'])
})

test.each([0, 1, 8])('ids stay unique where a host allows %d characters', (max) => {
  const ids = new ToolIds({ pattern: /^[\s\S]+$/, max })
  const taken = Array.from({ length: 100 }, (_, turn) => ids.take('call_of_some_length', turn))
  expect(new Set(taken).size).toBe(100)
})

test('pitfall 35: a second result for one call is left out, with one warning', () => {
  const warnings = new WarningList()
  const turns = [user('u'), assistant(call('a')), user(result('a', '1'), result('a', '2'), result('a', '3'))]
  const list = pairTools(turns, rule, warnings)
  expect(list[2]?.blocks).toEqual([result('a', '1')])
  expect(warnings.list).toEqual([{ code: 'duplicate_tool_result_dropped', field: '/messages' }])
})

test('assistant turns in a row are answered together, also with a system message between', () => {
  expect(
    paired(user('u'), assistant(call('a')), assistant(call('b')), system('s'), user(result('a'), result('b'))),
  ).toEqual(['a', 'b', '=a', '=b'])
})

test('ids that fit stay, others keep what is readable with a hash, alike each time', () => {
  const one = new ToolIds(rule)
  expect(one.take('call_1', 0)).toBe('call_1')
  const replaced = one.take('call 1', 0)
  expect(replaced).toMatch(/^call_1_[0-9a-f]{8}$/)
  expect(new ToolIds(rule).take('call 1', 9)).toBe(replaced)
  expect(one.take('y'.repeat(50), 0)).toHaveLength(40)
})

test('pitfall 48: where ids are nine letters and digits, a hash alone is left', () => {
  const ids = new ToolIds({ pattern: /^[A-Za-z0-9]{9}$/, max: 9 })
  expect(ids.take('abcDEF123', 0)).toBe('abcDEF123')
  const first = ids.take('call_1', 0)
  expect(first).toMatch(/^[0-9a-f]{9}$/)
  const second = ids.take('call_1', 2)
  expect(second).toMatch(/^[0-9a-f]{9}$/)
  expect(second).not.toBe(first)
})

test('legal names stay, others become legal, no two become one, and all can be restored', () => {
  const name = fc.oneof(
    fc.string({ minLength: 1, maxLength: 100, unit: 'grapheme' }),
    fc.constantFrom('a.b', 'a b', 'a_b'),
  )
  fc.assert(
    fc.property(fc.uniqueArray(name, { minLength: 1, maxLength: 20 }), (names) => {
      const sent = new ToolNames(names, 64)
      const all = names.map((each) => sent.sent(each))
      expect(new Set(all).size).toBe(names.length)
      for (const [i, each] of names.entries()) {
        expect(all[i]).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
        expect(sent.callerNames.get(all[i] as string) ?? all[i]).toBe(each)
      }
    }),
  )
})

test('maps a name independently of the others', () => {
  expect(new ToolNames(['a.b', 'c d'], 64).sent('a.b')).toBe(new ToolNames(['x', 'a.b'], 64).sent('a.b'))
})

test('a name that a caller gave to another tool is not taken', () => {
  const taken = new ToolNames(['a.b'], 64).sent('a.b')
  expect(new ToolNames(['a.b', taken], 64).sent('a.b')).not.toBe(taken)
  expect(new ToolNames(['json'], 64).unused('json')).toBe('json_2')
})

test('a schema whose fields all have legal names stays as it was written', () => {
  const names = new ArgumentNames()
  for (const schema of [
    '{ "type":"object", "properties":{"a.b-c_1":{"const":1.0}}, "required":["a.b-c_1"] }',
    '{"type":"object"}',
    '{"type":"object","properties":{"$a":{},"$a":{}}}',
    // They are allowed below the root.
    '{"type":"object","properties":{"a":{"type":"object","properties":{"$filter":{}}}}}',
  ]) {
    expect(names.inSchema('f', schema)).toBe(schema)
  }
  expect([names.callerNames.size, names.inCall('f', '{ "$x":1 }')]).toEqual([0, '{ "$x":1 }'])
})

test('fields of other names are renamed in schema and calls, alike each time and without merging two', () => {
  const names = new ArgumentNames()
  const schema =
    '{"type":"object","properties":{"$filter":{"x":1.0},"_filter":{},"filter[id]":{}},"required":["filter[id]","_filter",1]}'
  const sent = names.inSchema('f', schema)
  const fields = Object.keys(JSON.parse(sent).properties)
  expect(fields).toEqual([
    expect.stringMatching(/^_filter_[0-9a-f]{8}$/),
    '_filter',
    expect.stringMatching(/^filter_id__/),
  ])
  expect(JSON.parse(sent).required).toEqual([fields[2], '_filter', 1])
  expect(sent).toContain('{"x":1.0}')
  expect(new ArgumentNames().inSchema('g', schema)).toBe(sent)
  expect(names.inCall('f', '{"$filter": 9007199254740993, "other":{"$filter":1}}')).toBe(
    `{"${fields[0]}":9007199254740993,"other":{"$filter":1}}`,
  )
  expect(names.inCall('g', '{"$filter":1}')).toBe('{"$filter":1}')
  const mapping = new Map([
    [fields[0], '$filter'],
    [fields[2], 'filter[id]'],
  ])
  expect<unknown>(names.callerNames).toEqual(new Map([['f', mapping]]))
})

test('beyond what one request may have rewritten, schemas stay as they are', () => {
  const names = new ArgumentNames()
  const schema = `{"type":"object","description":"${'a'.repeat(190_000)}","properties":{"$filter":{}}}`
  const kept = ['a', 'b', 'c', 'd', 'e', 'f'].map((tool) => names.inSchema(tool, schema) === schema)
  expect(kept).toEqual([false, false, false, false, false, true])
  expect(names.inCall('f', '{"$filter":1}')).toBe('{"$filter":1}')
})

test('a field that the schema does not name keeps its name in calls: a model that repeats it would not be undone', () => {
  const names = new ArgumentNames()
  names.inSchema('f', '{"type":"object","properties":{"$filter":{}}}')
  expect(names.inCall('f', '{"z$":1}')).toBe('{"z$":1}')
})
