import { expect, test } from 'bun:test'
import { assistant, call, conversation, result, user } from '../../../test/parts/translation.ts'
import { forgetReasoning } from './reasoning.ts'

test('pitfall 88: all reasoning goes, and is said to', () => {
  const turns = [
    user('hi'),
    { ...assistant({ kind: 'thinking', text: 'hm', signature: 's' }, call('a')), pointer: '/messages/1' },
    user(result('a')),
    assistant({ kind: 'sealed-thinking', data: 'd' }, 'so'),
    user('next'),
  ]
  const warnings = [{ code: 'name_dropped', field: '/messages/0/name' }]
  const forgotten = forgetReasoning({ conversation: conversation({ turns }), warnings })
  expect(forgotten?.conversation.turns.map(({ blocks }) => blocks.map(({ kind }) => kind))).toEqual([
    ['text'],
    ['tool-call'],
    ['tool-result'],
    ['text'],
    ['text'],
  ])
  expect(forgotten?.warnings).toEqual([...warnings, { code: 'thinking_dropped', field: '/messages/1' }])
})

test('returns nothing for a conversation without reasoning', () => {
  const turns = [user('hi'), assistant('so'), user('next')]
  expect(forgetReasoning({ conversation: conversation({ turns }), warnings: [] })).toBeUndefined()
})
