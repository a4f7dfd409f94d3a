import { describe, expect, test } from 'bun:test'
import { geminis, refusedBy, rendered } from '../../../../test/parts/gemini.ts'
import { assistant, call, result, system, text, user } from '../../../../test/parts/translation.ts'
import type { AssistantBlock, Turn, UserBlock } from '../../canonical/conversation.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'

/** What a lost signature is replaced with (§5.6). */
const lost = 'skip_thought_signature_validator'
const png = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1').toString('base64')
const pdf = Buffer.from('%PDF-1.4').toString('base64')
const image: UserBlock = { kind: 'image', source: { kind: 'data', mediaType: 'image/png', base64: png } }
const inlineImage = { inlineData: { mimeType: 'image/png', data: png } }
const shot = (callId: string, ...content: (UserBlock & { kind: 'text' | 'image' | 'document' })[]): UserBlock => ({
  kind: 'tool-result',
  callId,
  content,
  isError: false,
})
const contents = (turns: Turn[], rules: TargetRules = geminis.g3) => rendered({ turns }, rules).body.contents
const calls = assistant(call('t1'), call('t2', '{}', 'g'))
const response = (id: string, name: string, value: object, more: object = {}) => ({
  functionResponse: { id, name, response: value, ...more },
})

describe('turns', () => {
  test('joins turns of one role into one content, and omits empty ones', () => {
    const turns = [user('a'), user('b', ''), assistant(''), user('c'), assistant('d'), assistant('e'), user('f')]
    expect(contents(turns)).toEqual([
      { role: 'user', parts: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] },
      { role: 'model', parts: [{ text: 'd' }, { text: 'e' }] },
      { role: 'user', parts: [{ text: 'f' }] },
    ])
  })

  test('puts leading system turns into the system instruction, one part each', () => {
    expect(rendered({ system: [text('A'), text(''), text('B')] }).body.systemInstruction).toEqual({
      parts: [{ text: 'A' }, { text: 'B' }],
    })
  })

  test('pitfall 31: of the system later on stay in their place, as tagged text', () => {
    const { body, warnings } = rendered({ turns: [user('a'), assistant('b'), system('B', 'C'), user('c')] })
    expect(body.contents[2]).toEqual({ role: 'user', parts: [{ text: '<system>\nB\n\nC\n</system>' }, { text: 'c' }] })
    expect(warnings).toEqual(['system_inlined;/messages'])
  })

  test('that say nothing at all are refused', () => {
    expect(refusedBy({ turns: [user('')] })).toBe('messages: `messages` has nothing to answer.')
  })

  test('that end with the assistant are refused, unless the target goes on from there', () => {
    expect(refusedBy({ turns: [user('a'), assistant('b')] })).toContain('does not support assistant message prefill')
    expect(contents([user('a'), assistant('b')], { prefill: true }).at(-1)).toEqual({
      role: 'model',
      parts: [{ text: 'b' }],
    })
  })
})

describe('calls and results', () => {
  test('vector 41: responses first, media inside them, then the rest', () => {
    const turns = [user('u'), calls, user(shot('t1', text('shot'), image), result('t2', 'two'), 'x')]
    expect(contents(turns).slice(1)).toEqual([
      {
        role: 'model',
        parts: [
          { functionCall: { id: 't1', name: 'f', args: {} }, thoughtSignature: lost },
          { functionCall: { id: 't2', name: 'g', args: {} } },
        ],
      },
      {
        role: 'user',
        parts: [
          response('t1', 'f', { output: 'shot' }, { parts: [inlineImage] }),
          response('t2', 'g', { output: 'two' }),
          { text: 'x' },
        ],
      },
    ])
  })

  test('pitfall 173: results in any order and any number of turns are one content in the order of the calls', () => {
    const turns = [user('u'), calls, user(result('t2', 'two')), system('S'), user('x', result('t1', 'one'))]
    expect(contents(turns).at(-1).parts).toEqual([
      response('t1', 'f', { output: 'one' }),
      response('t2', 'g', { output: 'two' }),
      { text: '<system>\nS\n</system>' },
      { text: 'x' },
    ])
  })

  test('vectors 42 and 43: an error is sent as an error, and an empty result as empty output', () => {
    const failed = (words: string): UserBlock => ({
      kind: 'tool-result',
      callId: 't1',
      content: words === '' ? [] : [text(words)],
      isError: true,
    })
    const said = (block: UserBlock) => contents([user('u'), assistant(call('t1')), user(block)]).at(-1).parts
    expect(said(failed('boom'))).toEqual([response('t1', 'f', { error: 'boom' })])
    expect(said(failed(''))).toEqual([response('t1', 'f', { error: '[tool error]' })])
    expect(said(result('t1', ''))).toEqual([response('t1', 'f', { output: '' })])
  })

  test('pitfall 100: older models get media in a content of their own, with their calls named', () => {
    const turns = [user('u'), calls, user(shot('t1', image), result('t2', 'two'), 'x')]
    expect(contents(turns, geminis.flash25).slice(1)).toEqual([
      {
        role: 'model',
        parts: [
          { functionCall: { id: 't1', name: 'f', args: {} } },
          { functionCall: { id: 't2', name: 'g', args: {} } },
        ],
      },
      {
        role: 'user',
        parts: [response('t1', 'f', { output: '[image]' }), response('t2', 'g', { output: 'two' })],
      },
      { role: 'user', parts: [{ text: 'From the result of tool call t1 (f):' }, inlineImage, { text: 'x' }] },
    ])
  })

  test('a medium by address stands beside the response, since nothing is fetched for one', () => {
    const byUrl = { kind: 'image', source: { kind: 'url', url: 'https://e.com/a.png' } } as const
    expect(contents([user('u'), assistant(call('t1')), user(shot('t1', byUrl))]).at(-1).parts).toEqual([
      response('t1', 'f', { output: '[image]' }),
      { text: 'From the result of tool call t1 (f):' },
      { fileData: { mimeType: 'image/png', fileUri: 'https://e.com/a.png' } },
    ])
  })

  test('the title of a document in a result is sent as text, because only data is allowed there', () => {
    const paper = {
      kind: 'document',
      source: { kind: 'data', mediaType: 'application/pdf', base64: pdf },
      title: 'r.pdf',
    } as const
    expect(contents([user('u'), assistant(call('t1')), user(shot('t1', paper))]).at(-1).parts).toEqual([
      response('t1', 'f', { output: 'r.pdf' }, { parts: [{ inlineData: { mimeType: 'application/pdf', data: pdf } }] }),
    ])
  })

  test('go without ids to a host that takes none', () => {
    const turns = [user('u'), calls, user(result('t2', 'two'), result('t1', 'one'))]
    expect(contents(turns, { ...geminis.flash25, toolIdMax: 0 }).slice(1)).toEqual([
      { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }, { functionCall: { name: 'g', args: {} } }] },
      {
        role: 'user',
        parts: [
          { functionResponse: { name: 'f', response: { output: 'one' } } },
          { functionResponse: { name: 'g', response: { output: 'two' } } },
        ],
      },
    ])
  })

  test('vectors 6 and 7: a call without a result and a result without a call are refused by name', () => {
    expect(refusedBy({ turns: [user('u'), calls, user(result('t1'))] })).toContain('`t2` has no tool result')
    expect(refusedBy({ turns: [user('u'), calls, user(result('t1'), result('t2'), result('t3'))] })).toContain('`t3`')
  })

  test('vector 10: arguments are an object, whatever was written', () => {
    const args = (written: string) => {
      const turns = [user('u'), assistant(call('t1', written)), user(result('t1'))]
      const { body, json, warnings } = rendered({ turns })
      return { args: body.contents[1].parts[0].functionCall.args, json, warnings }
    }
    expect(args('').args).toEqual({})
    expect(args('[1]').args).toEqual({ value: [1] })
    expect(args('{bad')).toMatchObject({
      args: { raw_arguments: '{bad' },
      warnings: ['thought_signature_skipped;/messages', 'invalid_arguments_wrapped;/messages'],
    })
    expect(args('{"n": 12345678901234567890}').json).toContain('"args":{"n": 12345678901234567890}')
  })

  test('a call of a custom tool has its text as input', () => {
    const custom: AssistantBlock = { kind: 'tool-call', id: 't1', name: 'p', arguments: 'free "text"', custom: true }
    expect(contents([user('u'), assistant(custom), user(result('t1'))])[1].parts[0].functionCall.args).toEqual({
      input: 'free "text"',
    })
  })
})

describe('media', () => {
  const parts = (...blocks: UserBlock[]) => contents([user(...blocks)])[0].parts

  test('by value are identified by their bytes, not their label', () => {
    const wrong = (mediaType: string): UserBlock => ({
      kind: 'image',
      source: { kind: 'data', mediaType, base64: png },
    })
    expect(parts(wrong('image/jpeg'))).toEqual([inlineImage])
    const paper: UserBlock = { kind: 'image', source: { kind: 'data', mediaType: 'image/png', base64: pdf } }
    expect(parts(paper)).toEqual([{ inlineData: { mimeType: 'application/pdf', data: pdf } }])
  })

  test('by address are passed on, with the type their ending tells', () => {
    const at = (url: string): UserBlock => ({ kind: 'image', source: { kind: 'url', url } })
    expect(parts(at('https://e.com/a.JPG?x=1'))).toEqual([
      { fileData: { mimeType: 'image/jpeg', fileUri: 'https://e.com/a.JPG?x=1' } },
    ])
    expect(parts(at('https://e.com/a'))).toEqual([{ fileData: { fileUri: 'https://e.com/a' } }])
  })

  test.each(['https://www.youtube.com/watch?v=a', 'https://YOUTU.BE/a'])('are no films: %s', (url) => {
    expect(refusedBy({ turns: [user({ kind: 'image', source: { kind: 'url', url } })] })).toContain('a film')
  })

  test('by address are refused where the host fetches nothing', () => {
    const source = { kind: 'url', url: 'https://e.com/a' } as const
    for (const kind of ['image', 'document'] as const) {
      expect(refusedBy({ turns: [user({ kind, source })] }, { mediaUrls: false })).toContain('by URL')
    }
  })

  test('pitfall 174: of a type the provider does not read are refused', () => {
    const gif = Buffer.from('GIF89a').toString('base64')
    const images: UserBlock[] = [
      { kind: 'image', source: { kind: 'data', mediaType: 'image/gif', base64: gif } },
      { kind: 'image', source: { kind: 'url', url: 'https://e.com/a.gif' } },
    ]
    for (const block of images) expect(refusedBy({ turns: [user(block)] })).toContain('`image/gif` is not supported')
    const zip: UserBlock = {
      kind: 'document',
      source: { kind: 'data', mediaType: 'application/zip', base64: 'UEsDBA==' },
    }
    expect(refusedBy({ turns: [user(zip)] })).toContain('`application/zip` is not supported')
  })

  test('are refused where the model takes none', () => {
    expect(refusedBy({ turns: [user(image)] }, { images: false })).toContain('does not take images')
  })

  test('a document has its title and context in front, and plain text is text', () => {
    const paper: UserBlock = {
      kind: 'document',
      source: { kind: 'data', mediaType: 'application/pdf', base64: pdf },
      title: 'r.pdf',
      context: 'a report',
    }
    const plain: UserBlock = { kind: 'document', source: { kind: 'text', text: 'words' }, title: 'T' }
    const coded: UserBlock = { kind: 'document', source: { kind: 'data', mediaType: 'text/csv', base64: 'YSxi' } }
    expect(parts(paper, plain, coded)).toEqual([
      { text: 'r.pdf\n\na report' },
      { inlineData: { mimeType: 'application/pdf', data: pdf } },
      { text: 'T\n\nwords' },
      { text: 'a,b' },
    ])
  })

  test('sound is data like any other', () => {
    const sound: UserBlock = { kind: 'document', source: { kind: 'data', mediaType: 'audio/mp3', base64: 'SUQz' } }
    expect(parts(sound)).toEqual([{ inlineData: { mimeType: 'audio/mp3', data: 'SUQz' } }])
  })
})
