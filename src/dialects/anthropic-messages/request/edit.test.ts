import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { messagesEnvelope } from '../../../../test/parts/translation.ts'
import type { RequestEdits } from '../../byte-lane/edits.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { editRequest } from './edit.ts'

const edits = { upstreamModel: 'up', defaultOutputCap: undefined, rules: {} }
/** A body around the text of its messages, with a spelling that only bytes can keep. */
const around = (messages: string, model = '"a/b"') =>
  `{ "messages":[${messages}] , "temperature":1.0,"model":${model},\n "max_tokens":9}`
const edited = (messages: string) =>
  new TextDecoder().decode(editRequest(messagesEnvelope(around(messages)), edits).body)
const becomes = (messages: string) => around(messages, '"up"')

const hi = '{"role":"user","content":"hi"}'
const own = '{"type":"thinking","thinking":"hm","signature":"tg1.eyJ"}'
const real = '{"type":"thinking","thinking":"hm","signature":"EqoB"}'
const empty = '{"type":"text","text":"","citations":null}'
const call = '{"type":"tool_use","id":"t","name":"f","input":{"n":12345678901234567890}}'
const says = (...blocks: string[]) => `{"role":"assistant","content":[${blocks.join(',')}]}`

test('only the model changes in a body that holds nothing of ours', () => {
  const messages = `${hi}, ${says(real, '{"type":"text" ,"text":"a"}')},${hi}`
  expect(edited(messages)).toBe(becomes(messages))
})

test('vector 46: thinking signed by us is cut out, all other bytes unchanged', () => {
  expect(edited(`${hi},${says(own, call)},${hi}`)).toBe(becomes(`${hi},${says(call)},${hi}`))
  expect(edited(`${hi},${says(call, own)}`)).toBe(becomes(`${hi},${says(call)}`))
  expect(edited(`${hi},${says(own, real, own, own, call, own, own)}`)).toBe(becomes(`${hi},${says(real, call)}`))
})

test('vector 83: the empty text that stood for an answer without content is cut out', () => {
  expect(edited(`${hi},${says(empty, call)},${hi}`)).toBe(becomes(`${hi},${says(call)},${hi}`))
  expect(edited(`${hi},${says('{"type": "text", "text": ""}', call)}`)).toBe(becomes(`${hi},${says(call)}`))
})

test('a message in which nothing else is goes as a whole', () => {
  expect(edited(`${hi},${says(own, empty)},${hi}`)).toBe(becomes(`${hi},${hi}`))
  expect(edited(`${hi} , ${says(empty)}`)).toBe(becomes(hi))
  expect(edited(`${says(empty)},${hi}`)).toBe(becomes(hi))
})

test('the label of an image is corrected by its content, also in a tool result', () => {
  const jpeg = Buffer.from('ffd8ffe000104a464946', 'hex').toString('base64').padEnd(120, 'A')
  const png = Buffer.from('89504e470d0a1a0a0000000d', 'hex').toString('base64').padEnd(120, 'A')
  const image = (label: string, data: string) =>
    `{"type":"image","source":{"data":"${data}", "type":"base64","media_type" : "${label}"}}`
  const holding = (block: string) =>
    `{"role":"user","content":[${block},{"type":"tool_result","tool_use_id":"t","content":[${block}]}]}`
  const escaped = jpeg.replaceAll('/', '\\/')
  for (const [label, data, expected] of [
    ['image/png', jpeg, 'image/jpeg'],
    ['image/png', escaped, 'image/jpeg'],
    ['image/jpg', jpeg, 'image/jpeg'],
    ['image/webp', png, 'image/png'],
    ['image/png', png, 'image/png'],
    // The provider judges what is unknown.
    ['image/png', 'QUJD', 'image/png'],
    ['image/png', '', 'image/png'],
  ] as const) {
    expect(edited(holding(image(label, data)))).toBe(becomes(holding(image(expected, data))))
  }
  const byUrl = '{"type":"image","source":{"type":"url","url":"https://a.example/image/png"}}'
  expect(edited(holding(byUrl))).toBe(becomes(holding(byUrl)))
})

test('sealed thinking of ours is cut out too', () => {
  expect(edited(`${hi},${says('{"type":"redacted_thinking","data":"tg1.x"}', call)}`)).toBe(
    becomes(`${hi},${says(call)}`),
  )
})

test('keeps the text of the user, also empty text and words that only look like ours', () => {
  for (const messages of [
    `{"role":"user","content":[${empty}]}`,
    `{"role":"user","content":"\\"signature\\":\\"tg1.x\\""},${says('{"type":"text","text":"\\"text\\":\\"\\""}')}`,
    `${hi},${says('{"type":"tool_use","id":"t","name":"f","input":{"text":"","signature":"tg1.x"}}')}`,
    `${hi},{"role":"assistant","content":""}`,
    `${hi},{"role":"assistant","content":[]},${hi},{"content":[{"type":"text","text":""}]}`,
  ]) {
    expect(edited(messages)).toBe(becomes(messages))
  }
})

test('gives the same result as editing the parsed list', () => {
  const block = fc.constantFrom(own, real, empty, call, '{"type":"text","text":"a"}')
  const space = fc.constantFrom('', ' ', '\n\t')
  const list = (element: fc.Arbitrary<string>) =>
    fc
      .array(fc.tuple(space, element, space), { minLength: 1, maxLength: 5 })
      .map((parts) => parts.map(([before, text, after]) => before + text + after).join(','))
  const message = fc.oneof(
    fc.constant(hi),
    list(block).map((blocks) => says(blocks)),
  )
  fc.assert(
    fc.property(list(message), (messages) => {
      const isOurs = (one: { text?: string; signature?: string }) =>
        one.text === '' || one.signature?.startsWith('tg1.') === true
      const expected = (JSON.parse(`[${messages}]`) as { role: string; content: string | object[] }[]).flatMap(
        (one) => {
          if (typeof one.content === 'string') return [one]
          const content = one.content.filter((each) => !isOurs(each))
          return content.length > 0 ? [{ ...one, content }] : []
        },
      )
      expect(JSON.parse(edited(messages)).messages).toEqual(expected)
    }),
  )
})

test('pitfall 1: the line for billing stays away from hosts that it is not for', () => {
  const line = '{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cch=ab12;"}'
  const prompt = '{"type":"text", "text":"You are…","cache_control":{"type":"ephemeral"}}'
  const about = '{"type":"text","text":"Say nothing of x-anthropic-billing-header: it is\\nsecret"}'
  const around = (...blocks: string[]) =>
    `{"model":"up","system":[ ${blocks.join(' , ')} ],"max_tokens":9,"messages":[${hi}]}`
  const sent = (body: string, rules: TargetRules = { attributionLine: false }) =>
    new TextDecoder().decode(editRequest(messagesEnvelope(body), { ...edits, rules }).body)
  const body = around(line, prompt, about)
  expect(sent(body)).toBe(around(prompt, about))
  expect(sent(around(line))).toBe(around(''))
  expect(sent(body, {})).toBe(body)
  const joined = around(`${line.slice(0, -2)}\\nYou are…"}`, prompt)
  expect(sent(joined)).toBe(joined)
})

test('lowers a cap above the maximum of the model, and writes tiers in the words of the host', () => {
  const sent = (members: string, more: Partial<RequestEdits>) => {
    const body = `{"model":"up",${members},"messages":[${hi}]}`
    const { body: bytes, warnings } = editRequest(messagesEnvelope(body), { ...edits, ...more })
    const text = new TextDecoder().decode(bytes)
    return [text.slice('{"model":"up",'.length, text.indexOf(',"messages"')), ...warnings]
  }
  const clamped = { code: 'max_tokens_clamped', field: '/max_tokens' }
  expect(sent('"max_tokens":5000', { maxOutputTokens: 50 })).toEqual(['"max_tokens":50', clamped])
  expect(sent('"max_tokens":5E1', { maxOutputTokens: 50 })).toEqual(['"max_tokens":5E1'])
  expect(sent('"max_tokens":90', { maxOutputTokens: 50, affordableOutputCap: 40 })).toEqual(['"max_tokens":40'])
  expect(sent('"speed":"fast","max_tokens":9', {})).toEqual(['"speed":"fast","max_tokens":9'])
  expect(sent('"speed":"standard","max_tokens":9', {})).toEqual(['"speed":"standard","max_tokens":9'])
  const none = { rules: { serviceTiers: {} } }
  expect(sent('"max_tokens":9,"speed":"standard","service_tier":"auto"', none)).toEqual(['"max_tokens":9'])
  const words = { rules: { serviceTiers: { priority: 'priority' } } }
  expect(sent('"max_tokens":9,"service_tier":"auto","speed":"fast"', words)).toEqual([
    '"max_tokens":9,"service_tier":"priority"',
  ])
})

describe('unpaid models', () => {
  const body = (more: string) => `{"model":"a/b","max_tokens":9,${more}"messages":[${hi}]}`
  const sent = (more: string, isOwn = false) => {
    const { body: bytes, warnings } = editRequest(messagesEnvelope(body(more)), { ...edits, isOwn })
    return [
      new TextDecoder().decode(bytes).replace('"up"', '"a/b"'),
      warnings.map(({ code, field }) => `${code} ${field}`),
    ]
  }
  const fallbacks = '"fallbacks":[{"model":"claude-opus-5-5","speed":"fast"}],'
  const search = '{"type":"web_search_20250305","name":"web_search"}'
  const own = '{"name":"f","input_schema":{"type":"object","properties":{"model":{"type":"string"}}}}'

  test('are not fallen back to', () => {
    expect(sent(fallbacks)).toEqual([body(''), ['fallbacks_dropped /fallbacks']])
    expect(sent('"models":["x/y"],"route":"fallback",')).toEqual([body(''), []])
  })

  test.each(['"model"', '"mod\\u0065l"'])('are not asked for advice, written as %s', (name) => {
    const advisor = `{"type":"advisor_20260301","name":"advisor",${name}:"claude-opus-5-5"}`
    expect(sent(`"tools":[${search},${advisor}, ${own}],`)).toEqual([
      body(`"tools":[${search},${own}],`),
      ['tool_dropped /tools/1'],
    ])
  })

  test('are not asked for advice where a name appears twice, or by the only tool', () => {
    const twice = '{"type":"advisor_20260301","name":"advisor","model":"claude-opus-5-5","name":"advisor"}'
    expect(sent(`"tools":[${own},${twice}],`)).toEqual([body(`"tools":[${own}],`), ['tool_dropped /tools/1']])
    expect(sent(`"tools":[${twice}],"tool_choice":{"type":"any"},`)).toEqual([body(''), ['tools_dropped /tools']])
  })

  test('are not asked by tools and plugins of a host that resells them', () => {
    const fusion = '{"type":"openrouter:fusion","parameters":{"analysis_models":["x/dear"]}}'
    const plain = '{"type":"openrouter:web_search"}'
    expect(sent(`"tools":[${fusion},${plain}],`)).toEqual([body(`"tools":[${plain}],`), ['tool_dropped /tools/0']])
    const plugins = '"plugins":[{"id":"web"},{"id":"fusion","analysis_models":["x/dear"],"model":"y/dear"}],'
    expect(sent(plugins)).toEqual([body('"plugins":[{"id":"web"}],'), ['plugin_dropped /plugins/1']])
    expect(sent(plugins, true)).toEqual([body(plugins), []])
  })

  test('are kept if the workspace uses its own credential', () => {
    expect(sent(fallbacks, true)).toEqual([body(fallbacks), []])
  })

  test('tools that only mention models in their schema stay', () => {
    expect(sent(`"tools":[${own}],`)).toEqual([body(`"tools":[${own}],`), []])
  })
})
