import { expect, test } from 'bun:test'
import type { Failure } from '../../kernel/failure.ts'
import { readRequest, reportUnsupported, shownCallId, shownWord, WarningList } from './fields.ts'

const words = ['user', 'getWeather', 'look2', 'input_audio', 'get-weather', 'web_search_20250305', 'User']

test.each(words)('a word is shown: %s', (value) => {
  expect(shownWord(value)).toBe(`\`${value}\``)
  expect(shownCallId(value)).toBe(`\`${value}\``)
})

const secrets = ['sk-live-0123456789abcdef', 'swordfish-0123456789', 'a'.repeat(41), 'a1b2c3d4', 'two words']

test.each([...secrets, '', '5', 'é', 'a`b', 5, undefined, null, {}])('anything else is not: %p', (value) => {
  expect(shownWord(value)).toBe('`…`')
})

test('the id of a call is shown in the forms that providers use', () => {
  expect(shownCallId('call_0123456789abcdefABCDEF')).toBe('`call_0123456789abcdefABCDEF`')
  expect(shownCallId('toolu_01A09q90qw90lq917835lq9')).toBe('`toolu_01A09q90qw90lq917835lq9`')
  for (const secret of secrets) expect(shownCallId(secret)).toBe('`…`')
})

test('the first field that must not be dropped refuses the request; an unusual field name gets a general code', () => {
  const warnings = new WarningList()
  const fields = [
    { field: '/foo', refuse: false },
    { field: '/x y;z', refuse: false },
    { field: '/n', refuse: true },
  ]
  const failure = readRequest(() => reportUnsupported(fields, warnings))
  expect((failure as Failure).facts.param).toBe('n')
  expect(warnings.list.map(({ code }) => code)).toEqual(['foo_dropped', 'field_dropped'])
})
