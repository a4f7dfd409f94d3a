import { describe, expect, test } from 'bun:test'
import { collectReply } from '../../../test/parts/collect-reply.ts'
import { geminis, geminiTarget, issuer, rendered, said } from '../../../test/parts/gemini.ts'
import { parseWhole, requestId } from '../../../test/parts/reply-notation.ts'
import { assistant, call, result, user } from '../../../test/parts/translation.ts'
import type { AssistantBlock, Turn } from '../canonical/conversation.ts'
import { writeSignature } from '../canonical/signature.ts'
import { parseStream } from './reply/parse.ts'

const lost = 'skip_thought_signature_validator'

/** The blocks of a reply as a caller would send them back. */
function blocksOf(stream: string): AssistantBlock[] {
  return collectReply(parseWhole(parseStream(geminiTarget(), requestId), stream)).blocks.filter(
    ({ kind }) => kind !== 'refusal',
  )
}

function sentBack(blocks: readonly AssistantBlock[], target = geminiTarget()) {
  const results = blocks.flatMap((block) => (block.kind === 'tool-call' ? [result(block.id)] : []))
  const turns: Turn[] = [user('u'), { role: 'assistant', blocks }, user(...results, 'next')]
  const { body, warnings } = rendered({ turns }, target)
  return { parts: body.contents[1].parts, warnings }
}

const loop = said(
  [
    { text: 'Hm', thought: true },
    { functionCall: { id: 'a', name: 'f', args: { x: 1 } }, thoughtSignature: 'S1' },
    { functionCall: { id: 'b', name: 'g', args: {} } },
  ],
  'STOP',
)

describe('reasoning that goes back to its issuer', () => {
  test('vector 66: has each signature on the part it came on', () => {
    expect(sentBack(blocksOf(loop))).toEqual({
      parts: [
        { text: 'Hm', thought: true },
        { functionCall: { id: 'a', name: 'f', args: { x: 1 } }, thoughtSignature: 'S1' },
        { functionCall: { id: 'b', name: 'g', args: {} } },
      ],
      warnings: [],
    })
  })

  test('finds its call also where a caller sends all thinking first', () => {
    const two = said(
      [
        { functionCall: { id: 'a', name: 'f', args: {} }, thoughtSignature: 'S1' },
        { functionCall: { id: 'b', name: 'g', args: {} }, thoughtSignature: 'S2' },
      ],
      'STOP',
    )
    const blocks = blocksOf(two)
    const reordered = [
      ...blocks.filter(({ kind }) => kind === 'thinking').reverse(),
      ...blocks.filter(({ kind }) => kind !== 'thinking'),
    ]
    expect(sentBack(reordered).parts).toEqual([
      { functionCall: { id: 'a', name: 'f', args: {} }, thoughtSignature: 'S1' },
      { functionCall: { id: 'b', name: 'g', args: {} }, thoughtSignature: 'S2' },
    ])
  })

  test('finds it by the id the caller has, though another is sent', () => {
    const long = 'x'.repeat(70)
    const stream = said([{ functionCall: { id: long, name: 'f', args: {} }, thoughtSignature: 'S' }], 'STOP')
    const [part] = sentBack(blocksOf(stream)).parts
    expect(part.thoughtSignature).toBe('S')
    expect(part.functionCall.id).toHaveLength(64)
  })

  test('includes signatures of thoughts and of text', () => {
    const stream = said(
      [
        { text: 'Hm', thought: true, thoughtSignature: 'S1' },
        { text: 'So', thoughtSignature: 'S2' },
      ],
      'STOP',
    )
    expect(sentBack(blocksOf(stream)).parts).toEqual([
      { text: 'Hm', thought: true, thoughtSignature: 'S1' },
      { text: 'So', thoughtSignature: 'S2' },
    ])
  })

  test('leaves out, without a word, thoughts that were only to be read', () => {
    const stream = said([{ text: 'Hm', thought: true }, { text: 'So' }], 'STOP')
    expect(sentBack(blocksOf(stream))).toEqual({ parts: [{ text: 'So' }], warnings: [] })
  })
})

describe('reasoning of others', () => {
  test('pitfall 81: of another host stays away, and the call says that its signature is lost', () => {
    const elsewhere = geminiTarget(geminis.g3, { issuer: 'other/gemini/g' })
    expect(sentBack(blocksOf(loop), elsewhere)).toEqual({
      parts: [
        { functionCall: { id: 'a', name: 'f', args: { x: 1 } }, thoughtSignature: lost },
        { functionCall: { id: 'b', name: 'g', args: {} } },
      ],
      warnings: ['thinking_dropped;/messages', 'thought_signature_skipped;/messages'],
    })
  })

  test('pitfall 80: a call that comes back without its signature is a warning, unless the model wants none', () => {
    const plain = [call('a'), call('b')]
    expect(sentBack(plain).warnings).toEqual(['thought_signature_skipped;/messages'])
    expect(sentBack(plain, geminiTarget(geminis.pro25)).warnings).toEqual([])
  })

  test('vectors 45 and 46: of other dialects stays away too', () => {
    const blob = writeSignature({ issuer: 'acme/openai-responses/m', blob: '{"id":"rs_1"}' })
    for (const signature of ['EqoB', blob, undefined]) {
      expect(
        sentBack([{ kind: 'thinking', text: 'Hm', signature }, ...assistant('a').blocks] as AssistantBlock[]),
      ).toEqual({
        parts: [{ text: 'a' }],
        warnings: ['thinking_dropped;/messages'],
      })
    }
    expect(sentBack([{ kind: 'sealed-thinking', data: 'Emw=' }, call('a')]).warnings).toEqual([
      'thinking_dropped;/messages',
      'thought_signature_skipped;/messages',
    ])
  })

  test('a blob that anybody could have written does no harm', () => {
    for (const blob of ['', '[]', '{"part":"call"}', '{"part":"x","signature":"S"}', '{"part":"text","signature":1}']) {
      const forged: AssistantBlock = { kind: 'thinking', text: 'Hm', signature: writeSignature({ issuer, blob }) }
      expect(sentBack([forged, call('a')]).parts).toEqual([
        { functionCall: { id: 'a', name: 'f', args: {} }, thoughtSignature: lost },
      ])
    }
  })

  test('models that need no signatures get none in place of lost ones', () => {
    expect(sentBack([call('a')], geminiTarget(geminis.flash25)).parts).toEqual([
      { functionCall: { id: 'a', name: 'f', args: {} } },
    ])
  })

  test('pitfall 80: each step of a loop keeps its signature, or gets the placeholder for a lost one', () => {
    const turns = [user('u'), assistant(call('a')), user(result('a')), assistant(call('b')), user(result('b'))]
    const { contents } = rendered({ turns }, geminis.g3).body
    expect(contents[1].parts[0].thoughtSignature).toBe(lost)
    expect(contents[3].parts[0].thoughtSignature).toBe(lost)
  })
})
