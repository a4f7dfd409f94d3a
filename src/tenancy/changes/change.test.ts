import { expect, test } from 'bun:test'
import { changeOf, parseChange, renderChange } from './change.ts'

test('what an id names is in its prefix', () => {
  expect(changeOf('key_1')).toEqual({ kind: 'key', id: 'key_1' })
  expect(changeOf('prj_1')).toEqual({ kind: 'project', id: 'prj_1' })
  expect(changeOf('ws_1')).toEqual({ kind: 'workspace', id: 'ws_1' })
})

test('a change arrives as it was told', () => {
  const told = { change: { kind: 'credential', id: 'ws_1' }, sequence: 9_007_199_254_740_993n } as const
  expect(parseChange(renderChange(told))).toEqual(told)
  const alone = { change: { kind: 'price', id: 'acme/large' } } as const
  expect(parseChange(renderChange(alone))).toEqual(alone)
})

const strange = [
  '',
  'null',
  '[]',
  '{"kind":"key"}',
  '{"kind":"key","id":"prj_1"}',
  '{"kind":"credential","id":"key_1"}',
  '{"kind":"weather","id":"ws_1"}',
  '{"kind":"key","id":5}',
]

test.each(strange)('what is not understood says nothing: %p', (text) => {
  expect(parseChange(text)).toBeUndefined()
})

test('a number that is none does not hide the change', () => {
  expect(parseChange('{"kind":"key","id":"key_1","sequence":"x"}')).toEqual({ change: { kind: 'key', id: 'key_1' } })
})
