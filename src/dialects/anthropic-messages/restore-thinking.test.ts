import { expect, test } from 'bun:test'
import { assistant, call, renderMessagesBody, result, user } from '../../../test/parts/translation.ts'
import type { AssistantBlock, Turn } from '../canonical/conversation.ts'
import { writeSignature } from '../canonical/signature.ts'

const thinking = (text: string, signature: string | undefined): AssistantBlock => ({
  kind: 'thinking',
  text,
  signature,
})
const sealed = (data: string): AssistantBlock => ({ kind: 'sealed-thinking', data })
const issuer = 'anthropic/anthropic-messages'

/** The blocks of the assistant messages, shortly. */
function sent(...turns: Parameters<typeof assistant>[]): { blocks: string[][]; warnings: readonly string[] } {
  const { body, warnings } = renderMessagesBody({
    turns: [user('u'), ...turns.flatMap((blocks) => [assistant(...blocks), user('v')])],
  })
  const assistants = body.messages.filter(({ role }: { role: string }) => role === 'assistant')
  const short = (one: Record<string, string>) =>
    one.type === 'thinking' ? `${one.thinking}/${one.signature}` : (one.data ?? one.text ?? '')
  return {
    blocks: assistants.map(({ content }: { content: Record<string, string>[] }) => content.map(short)),
    warnings,
  }
}

test('vector 35: signed blocks and sealed ones go back byte for byte, in their order, before the calls', () => {
  const turns = [
    user('u'),
    assistant(thinking('one', 'sigA=='), thinking('two', 'sigB'), sealed('EncrYpted'), call('c')),
    user(result('c')),
  ]
  const { body, warnings } = renderMessagesBody({ turns })
  expect(body.messages[1].content).toEqual([
    { type: 'thinking', thinking: 'one', signature: 'sigA==' },
    { type: 'thinking', thinking: 'two', signature: 'sigB' },
    { type: 'redacted_thinking', data: 'EncrYpted' },
    { type: 'tool_use', id: 'c', name: 'f', input: {} },
  ])
  expect(warnings).toEqual([])
})

test('pitfall 72: thinking between text and calls stays between them', () => {
  const { body } = renderMessagesBody({
    turns: [user('u'), assistant(thinking('1', 's1'), 'text', thinking('2', 's2'), call('c')), user(result('c'))],
  })
  expect(body.messages[1].content.map(({ type }: { type: string }) => type)).toEqual([
    'thinking',
    'text',
    'thinking',
    'tool_use',
  ])
})

test('pitfall 74: a block with a signature and no text is kept', () => {
  expect(sent([thinking('', 'sig'), 'a']).blocks).toEqual([['/sig', 'a']])
})

test('pitfall 73 and 75: sealed blocks and several thinking blocks stay apart', () => {
  expect(sent([thinking('a', '1'), sealed('X'), thinking('b', '2'), 'c']).blocks).toEqual([['a/1', 'X', 'b/2', 'c']])
})

test('pitfall 77: unsigned thinking and thinking signed by us for others is left out with a warning', () => {
  expect(sent([thinking('a', undefined), 'x'])).toEqual({ blocks: [['x']], warnings: ['thinking_dropped;/messages'] })
  const foreign = writeSignature({ issuer: 'acme/openai-chat', blob: 'b' })
  expect(sent([thinking('a', foreign), 'x'])).toEqual({ blocks: [['x']], warnings: ['thinking_dropped;/messages'] })
  expect(sent([sealed(foreign), 'x']).blocks).toEqual([['x']])
})

test('pitfall 79: what we signed for this very issuer is restored', () => {
  const own = writeSignature({ issuer, blob: 'real-signature' })
  expect(sent([thinking('a', own), 'x'])).toEqual({ blocks: [['a/real-signature', 'x']], warnings: [] })
  expect(sent([sealed(writeSignature({ issuer, blob: 'D' })), 'x']).blocks).toEqual([['D', 'x']])
  expect(sent([thinking('a', writeSignature({ issuer, blob: undefined })), 'x']).blocks).toEqual([['x']])
  expect(sent([thinking('a', 'tg1.damaged'), 'x']).blocks).toEqual([['x']])
})

test('where the thinking of a turn is lost, that of all earlier turns stays away and later ones are kept', () => {
  expect(sent([thinking('1', 's1'), 'a'], [thinking('2', undefined), 'b'], [thinking('3', 's3'), 'c']).blocks).toEqual([
    ['a'],
    ['b'],
    ['3/s3', 'c'],
  ])
})

test('thinking that led to nothing stays away, since no message may end with it, and so does all before it', () => {
  const lost = ['thinking_dropped;/messages']
  expect(sent([thinking('1', 's1')])).toEqual({ blocks: [], warnings: lost })
  expect(sent([thinking('1', 's1'), ' ']).blocks).toEqual([])
  expect(sent([thinking('1', 's1'), 'a', thinking('2', 's2'), sealed('X')]).blocks).toEqual([['a']])
  expect(sent([thinking('1', 's1'), 'a'], [thinking('2', 's2'), ''], [thinking('3', 's3'), 'c'])).toEqual({
    blocks: [['a'], ['3/s3', 'c']],
    warnings: lost,
  })
})

test('thinking that the next turn of the same message follows is kept', () => {
  const blocksOf = (...turns: Turn[]) =>
    renderMessagesBody({ turns: [user('u'), ...turns, user('v')] }).body.messages[1].content.length
  expect(blocksOf(assistant(thinking('1', 's1')), assistant('a'))).toBe(2)
  // A blank message between them is not sent.
  expect(blocksOf(assistant(thinking('1', 's1')), user(' '), assistant('a'))).toBe(2)
})

test('a conversation that ends with thinking ends with the user', () => {
  const turns = [user('u'), assistant(thinking('1', 's1'), ' ')]
  expect(renderMessagesBody({ turns }, { prefill: true }).body.messages).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'u' }] },
  ])
})

test('an assistant turn of lost thinking alone disappears', () => {
  expect(sent([thinking('1', undefined)]).blocks).toEqual([])
})
