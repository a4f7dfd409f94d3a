import { expect, test } from 'bun:test'
import { assistant, call, result, system, user } from '../../../test/parts/translation.ts'
import { Failure } from '../../kernel/failure.ts'
import type { Turn } from '../canonical/conversation.ts'
import { ToolIds } from './tool-ids.ts'
import { pairTools } from './tool-pairing.ts'
import { WarningList } from './warning-list.ts'

const rule = { pattern: /^[A-Za-z0-9_-]+$/, max: 40 }

/** Calls as `id`, results as `=id`, in the order of the turns. */
function paired(...turns: Turn[]): string[] | Failure {
  const list = pairTools(turns, rule, new WarningList())
  if (list instanceof Failure) return list
  return list.flatMap(({ blocks }) =>
    blocks.flatMap((block) =>
      block.kind === 'tool-call' ? block.id : block.kind === 'tool-result' ? `=${block.callId}` : [],
    ),
  )
}

test('vector 6: a call without a result is refused by its id', () => {
  const failure = paired(user('u'), { ...assistant(call('a'), call('b')), place: '/messages/1' }, user(result('a')))
  expect(failure).toBeInstanceOf(Failure)
  expect((failure as Failure).message).toContain('`b`')
  expect((failure as Failure).facts.param).toBe('messages[1]')
})

test('vector 7: a result without a call is refused by its id', () => {
  const failure = paired(user('u'), assistant('a'), { ...user(result('x')), place: '/messages/2' })
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

test('pitfall 35: a second result for one call is left out, with one warning', () => {
  const warnings = new WarningList()
  const turns = [user('u'), assistant(call('a')), user(result('a', '1'), result('a', '2'), result('a', '3'))]
  const list = pairTools(turns, rule, warnings) as Turn[]
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
