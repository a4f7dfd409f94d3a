import { describe, expect, test } from 'bun:test'
import { gpts, issuer, rendered, responsesTarget } from '../../../test/parts/responses.ts'
import { assistant, call, result, user } from '../../../test/parts/translation.ts'
import type { AssistantBlock } from '../canonical/conversation.ts'
import { writeSignature } from '../canonical/signature.ts'
import { signReasoning } from './reasoning.ts'

const sealed = (n: number) => ({ id: `rs_${n}`, summary: [`s${n}`], encryptedContent: `S${n}` })
const proof = (call: string | undefined, ...items: number[]) =>
  signReasoning(issuer, { items: items.map(sealed), call })
const thinking = (signature: string | undefined): AssistantBlock => ({ kind: 'thinking', text: 'seen', signature })
const item = (n: number) => ({
  type: 'reasoning',
  id: `rs_${n}`,
  summary: [{ type: 'summary_text', text: `s${n}` }],
  encrypted_content: `S${n}`,
})
const readBack = (...blocks: (AssistantBlock | string)[]) => {
  const calls = blocks.flatMap((block) => (typeof block !== 'string' && block.kind === 'tool-call' ? [block.id] : []))
  const { body, warnings } = rendered({
    turns: [user('u'), assistant(...blocks), user('v', ...calls.map((id) => result(id)))],
  })
  return { items: body.input.slice(1, body.input.length - 1 - calls.length), warnings }
}
const callItem = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' })
const said = (content: string, phase = 'commentary') => ({ role: 'assistant', content, phase })

describe('reasoning of the same issuer', () => {
  test('vector 46: goes back in front of its call, sealed and with its summary', () => {
    expect(readBack(thinking(proof('c1', 1)), call('c1'))).toEqual({ items: [item(1), callItem('c1')], warnings: [] })
  })

  test('pitfall 72: goes back to what it led to, though all of it came first', () => {
    const blocks = [thinking(proof(undefined, 1)), thinking(proof('c2', 2)), 'text', call('c1'), call('c2')]
    expect(readBack(...blocks).items).toEqual([item(1), said('text'), callItem('c1'), item(2), callItem('c2')])
  })

  test('that led to several messages stays with each of them', () => {
    const blocks = [thinking(proof(undefined, 1)), 'a', thinking(proof(undefined, 2)), 'b']
    expect(readBack(...blocks).items).toEqual([item(1), said('a', 'final_answer'), item(2), said('b', 'final_answer')])
  })

  test('that came as one block is several items again, from sealed blocks too', () => {
    const data = proof('c1', 1, 2)
    expect(readBack({ kind: 'sealed-thinking', data }, call('c1')).items).toEqual([item(1), item(2), callItem('c1')])
  })

  test('finds its call in the next assistant message', () => {
    const turns = [user('u'), assistant(thinking(proof('c1', 1))), assistant(call('c1')), user(result('c1'))]
    expect(rendered({ turns }).body.input.slice(1, 3)).toEqual([item(1), callItem('c1')])
  })

  test('finds its call under another id', () => {
    const long = 'x'.repeat(65)
    const { items } = readBack(thinking(proof(long, 1)), call(long))
    expect(items[0]).toEqual(item(1))
    expect(items[1].call_id).not.toBe(long)
  })

  test('is left out with a warning where what it led to is gone', () => {
    const dropped = ['thinking_dropped;/messages']
    expect(readBack(thinking(proof('gone', 1)), 'a')).toEqual({ items: [said('a', 'final_answer')], warnings: dropped })
    expect(readBack(thinking(proof(undefined, 1)), '', call('c1'))).toEqual({
      items: [callItem('c1')],
      warnings: dropped,
    })
  })
})

describe('other reasoning', () => {
  const left = (signature: string | undefined) => {
    const { items, warnings } = readBack(thinking(signature), 'a')
    expect(items).toEqual([said('a', 'final_answer')])
    return warnings
  }

  test('is left out, with a warning', () => {
    const dropped = ['thinking_dropped;/messages']
    expect(left('ErUB…')).toEqual(dropped)
    expect(left(undefined)).toEqual(dropped)
    expect(left(signReasoning('other/openai-responses/gpt-5.6', { items: [sealed(1)], call: undefined }))).toEqual(
      dropped,
    )
  })

  test('that was only to be read is left out without a word', () => {
    expect(left(signReasoning(issuer, undefined))).toEqual([])
  })

  test('that a caller made up is nothing to be sent', () => {
    for (const blob of 'x [] {"items":{}} {"items":[1,{"id":"rs_1"}]} {"items":[{"encrypted_content":""}]}'.split(
      ' ',
    )) {
      expect(left(writeSignature({ issuer, blob }))).toEqual(['thinking_dropped;/messages'])
    }
  })
})

test('an item without an id has none, and one without a summary an empty one', () => {
  const bare = signReasoning(issuer, { items: [{ id: '', summary: [], encryptedContent: 'S' }], call: undefined })
  const { body } = rendered({ turns: [user('u'), assistant(thinking(bare), 'a'), user('v')] }, responsesTarget(gpts.o3))
  expect(body.input[1]).toEqual({ type: 'reasoning', summary: [], encrypted_content: 'S' })
})
