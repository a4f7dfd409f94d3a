// What a host refuses from anybody is cut out of the caller's bytes; the rest of the edits is tested through the byte
// lane.

import { describe, expect, test } from 'bun:test'
import { Failure } from '../../../kernel/failure.ts'
import type { RequestEdits } from '../../byte-lane/edits.ts'
import { writeSignature } from '../../canonical/signature.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { openaiOwnTiers } from '../../canonical/tiers.ts'
import { readEnvelope } from '../envelope.ts'
import { editRequest } from './edit.ts'

function envelopeOf(body: string) {
  const envelope = readEnvelope(new TextEncoder().encode(body))
  if (envelope instanceof Failure) throw new Error(envelope.message)
  return envelope
}

function edited(body: string, rules: TargetRules): string {
  const edits = { upstreamModel: 'up', defaultOutputCap: undefined, rules }
  return new TextDecoder().decode(editRequest(envelopeOf(body), edits).body)
}

const plain = '"messages":[{"role":"user","content":"hi"}]'

describe('a host that refuses to be asked for usage', () => {
  const rules: TargetRules = { streamUsage: false }

  test('is not asked', () => {
    expect(edited(`{"model":"m","stream":true,${plain}}`, rules)).toBe(`{"model":"up","stream":true,${plain}}`)
    expect(edited(`{"model":"m","stream":true,${plain}}`, {})).toEndWith(',"stream_options":{"include_usage":true}}')
  })

  test.each([
    [`{"stream_options":{"include_usage":true}, "model":"m",${plain}}`, `{"model":"up",${plain}}`],
    [`{"model":"m", "stream_options" : {} ,"stream":true,${plain}}`, `{"model":"up", "stream":true,${plain}}`],
    [`{"model":"m","stream":true,${plain},"stream_options":null}`, `{"model":"up","stream":true,${plain}}`],
  ])('is not asked by the caller either: %s', (body, expected) => {
    expect(edited(body, rules)).toBe(expected)
  })
})

test("opencode's spelling of the cache key, which no host knows, is not sent", () => {
  expect(edited(`{"model":"m","promptCacheKey":"ses_1",${plain}}`, {})).toBe(`{"model":"up",${plain}}`)
})

describe('a host that refuses end users', () => {
  const rules: TargetRules = { endUserId: false, streamUsage: false }

  test.each([
    [`{"user":"u","model":"m",${plain}}`, `{"model":"up",${plain}}`],
    [`{"model":"m",${plain},"user":"u","safety_identifier":"s"}`, `{"model":"up",${plain}}`],
    [`{"user":"u","stream_options":{},"model":"m",${plain},"safety_identifier":"s"}`, `{"model":"up",${plain}}`],
  ])('reports none: %s', (body, expected) => {
    expect(edited(body, rules)).toBe(expected)
  })

  test('everybody else is', () => {
    expect(edited(`{"model":"m",${plain},"user":"u"}`, {})).toBe(`{"model":"up",${plain},"user":"u"}`)
  })

  test('an added cap follows the removed members', () => {
    const edits = { upstreamModel: 'up', defaultOutputCap: 7, rules }
    const body = envelopeOf(`{"model":"m",${plain},"user":"u"}`)
    expect(new TextDecoder().decode(editRequest(body, edits).body)).toBe(`{"model":"up",${plain},"max_tokens":7}`)
  })
})

describe('a host that knows one name for the cap', () => {
  const older: TargetRules = { outputCapName: 'max_tokens' }
  const newer: TargetRules = { outputCapName: 'max_completion_tokens' }

  test.each([
    [newer, '"max_tokens":5,"max_completion_tokens":7', '"max_completion_tokens":7'],
    [newer, '"max_completion_tokens":7,"max_tokens":5', '"max_completion_tokens":7'],
    [older, '"max_tokens":5, "max_completion_tokens":7', '"max_tokens":7'],
    [older, '"max_tokens":null,"max_completion_tokens":7', '"max_tokens":7'],
    [newer, '"max_tokens":5,"max_completion_tokens":null', '"max_completion_tokens":5'],
    [older, '"max_tokens":null,"max_completion_tokens":null', '"max_tokens":null'],
  ])('pitfall 3: gets one, the caller’s newer one: %o %s', (rules, caps, sent) => {
    expect(edited(`{"model":"m",${caps},${plain}}`, rules)).toBe(`{"model":"up",${sent},${plain}}`)
    expect(edited(`{"model":"m",${plain},${caps}}`, rules)).toBe(`{"model":"up",${plain},${sent}}`)
  })

  test('pitfall 3: also where the wallet pays for less', () => {
    const lowered = (caps: string, rules: TargetRules) => {
      const edits = { upstreamModel: 'up', defaultOutputCap: undefined, affordableOutputCap: 3, rules }
      return new TextDecoder().decode(editRequest(envelopeOf(`{"model":"m",${caps},${plain}}`), edits).body)
    }
    expect(lowered('"max_tokens":5,"max_completion_tokens":7', older)).toBe(`{"model":"up","max_tokens":3,${plain}}`)
    expect(lowered('"max_tokens":5,"max_completion_tokens":7', {})).toBe(
      `{"model":"up","max_completion_tokens":3,${plain}}`,
    )
    expect(lowered('"max_completion_tokens":7', {})).toBe(`{"model":"up","max_completion_tokens":3,${plain}}`)
    expect(lowered('"max_tokens":7', {})).toBe(`{"model":"up","max_tokens":3,${plain}}`)
  })

  test.each([
    ['"max_completion_tokens":7.0', '"max_completion_tokens":7.0'],
    ['"max_tokens":5,"max_completion_tokens":7', '"max_completion_tokens":7'],
    ['"max_completion_tokens":7,"max_tokens":9000', '"max_completion_tokens":7'],
    ['"max_tokens":5,"max_completion_tokens":null', '"max_tokens":5'],
    ['"max_tokens":5.0', '"max_tokens":5.0'],
  ])('one of which nothing is known gets one too, under the caller’s name: %s', (caps, sent) => {
    expect(edited(`{"model":"m",${caps},${plain}}`, {})).toBe(`{"model":"up",${sent},${plain}}`)
  })
})

describe('caps and tiers', () => {
  function sent(members: string, { rules = {}, ...more }: Partial<RequestEdits>) {
    const edits = { upstreamModel: 'up', defaultOutputCap: undefined, rules, ...more }
    const { body, warnings } = editRequest(envelopeOf(`{"model":"m",${members}${plain}}`), edits)
    const [before = '', after = ''] = new TextDecoder().decode(body).split(`${plain}`)
    expect([before.slice(0, 13), after.at(-1)]).toEqual(['{"model":"up"', '}'])
    return [before.slice(14) + after.slice(0, -1), warnings.map(({ code, field }) => `${code};${field}`)]
  }

  test.each([
    ['"max_tokens":5000,', { maxOutputTokens: 50 }, '"max_tokens":50,', ['max_tokens_clamped;/max_tokens']],
    [
      '"max_completion_tokens":51,',
      { maxOutputTokens: 50 },
      '"max_completion_tokens":50,',
      ['max_tokens_clamped;/max_completion_tokens'],
    ],
    ['"max_tokens":50,', { maxOutputTokens: 50 }, '"max_tokens":50,', []],
    // No more than the model can anyway: no warning is needed.
    ['', { maxOutputTokens: 50 }, '', []],
    ['', { maxOutputTokens: 50, defaultOutputCap: 20 }, ',"max_tokens":20', []],
    // Members that the wallet cannot pay are reported elsewhere.
    ['"max_tokens":5000,', { maxOutputTokens: 50, affordableOutputCap: 30 }, '"max_tokens":30,', []],
    [
      '"max_tokens":5000,',
      { maxOutputTokens: 50, affordableOutputCap: 60 },
      '"max_tokens":50,',
      ['max_tokens_clamped;/max_tokens'],
    ],
  ])('is lowered to what the model writes at most: %s %o', (members, edits, expected, warnings) => {
    expect(sent(members, edits)).toEqual([expected, warnings])
  })

  test.each(['"flex"', '"priority"', '"fast"', '"auto"', '"default"', 'null', '1'])(
    'a tier of %s passes to a host whose words are not known',
    (tier) => {
      expect(sent(`"service_tier":${tier},`, { namesTier: true })).toEqual([`"service_tier":${tier},`, []])
    },
  )

  test.each([
    ['"performance"', '"service_tier":"performance",'],
    ['"priority"', '"service_tier":"performance",'],
    ['"default"', '"service_tier":"on_demand",'],
    ['"flex"', ''],
  ])('a tier of %s is written as the host calls it', (tier, expected) => {
    const rules = { serviceTiers: { standard: 'on_demand', priority: 'performance' } }
    expect(sent(`"service_tier":${tier},`, { rules })).toEqual([expected, []])
  })

  test('the standard tier is named to a host that may choose another, if the price has tiers', () => {
    const rules = { serviceTiers: openaiOwnTiers }
    expect(sent('', { rules, namesTier: true })).toEqual([',"service_tier":"default"', []])
    expect(sent('', { rules })).toEqual(['', []])
  })
})

describe('messages', () => {
  const around = (...messages: string[]) => `{"model":"up","messages":[ ${messages.join(' , ')} ],"temperature":1.0}`
  const user = '{"role":"user","content":"as a \\"developer\\" with \\"reasoning\\" I say"}'
  const developer = '{"content":"be kind", "role" : "developer"}'
  const thoughtful = (details: string) =>
    `{"role":"assistant","reasoning_content":"hm", "content":"hi","reasoning_details":${details},"tool_calls":[{"id":"a","n":1.0}]}`
  const real = '{"type":"reasoning.text","text":"hm","signature":"EqoB"}'
  const own = '{"type":"reasoning.text","text":"hm","signature":"tg1.eyJ"}'
  const sealed = '{"type":"reasoning.encrypted","data":"tg1.eyJ"}'

  test('pitfall 30: the role developer becomes system where the host knows no other', () => {
    const body = around(developer, user, developer)
    const system = '{"content":"be kind", "role" : "system"}'
    expect(edited(body, { systemRole: 'system' })).toBe(around(system, user, system))
    expect(edited(body, { systemRole: 'developer' })).toBe(body)
    expect(edited(body, {})).toBe(body)
  })

  test('pitfall 83, 175, 176 and 183: reasoning in the history stays away from a host that refuses it', () => {
    const body = around(user, thoughtful(`[${real}]`), user)
    const bare = '{"role":"assistant","content":"hi","tool_calls":[{"id":"a","n":1.0}]}'
    expect(edited(body, { reasoningMembers: false })).toBe(around(user, bare, user))
    expect(edited(around(thoughtful(`[${own},${real}]`)), { reasoningMembers: false })).toBe(around(bare))
    expect(edited(body, {})).toBe(body)
  })

  test('a warning names the first message whose reasoning is left out', () => {
    const said = (more: string) => `{"role":"assistant","content":"hi"${more}}`
    const warnings = (...messages: string[]) =>
      editRequest(envelopeOf(around(...messages)), {
        upstreamModel: 'up',
        defaultOutputCap: undefined,
        rules: { reasoningMembers: false },
      }).warnings
    const thought = said(',"reasoning_content":"hm"')
    expect(warnings(user, said(''), thought, thought)).toEqual([{ code: 'thinking_dropped', field: '/messages/2' }])
    expect(warnings(said(',"reasoning":"hm"'))).toEqual([{ code: 'thinking_dropped', field: '/messages/0' }])
    // Empty, or shown by this gateway and not needed again.
    const signature = writeSignature({ issuer: 'p/d/up', blob: undefined })
    const shown = JSON.stringify([{ type: 'reasoning.text', text: 'hm', signature }])
    const silent = [
      ',"reasoning_content":""',
      ',"reasoning_content":null',
      `,"reasoning":"hm","reasoning_details":${shown}`,
    ]
    expect(warnings(...silent.map(said))).toEqual([])
  })

  test('pitfall 82: a host that misses reasoning in the history gets it empty, and never twice', () => {
    const said = '{"role":"assistant","content":"hi"}'
    const called = '{"role":"assistant","tool_calls":[{"id":"a"}] }'
    const echoed = '{"role":"assistant","content":"hi","reasoning_content":"hm"}'
    const body = around(user, said, called, echoed)
    const empty = ',"reasoning_content":""'
    const always = { reasoningEcho: { field: 'reasoning_content', when: 'always' } } as const
    expect(edited(body, always)).toBe(
      around(
        user,
        `{"role":"assistant","content":"hi"${empty}}`,
        `{"role":"assistant","tool_calls":[{"id":"a"}]${empty} }`,
        echoed,
      ),
    )
    const onCalls = { reasoningEcho: { field: 'reasoning_content', when: 'tool-turns' } } as const
    expect(edited(body, onCalls)).toBe(
      around(user, said, `{"role":"assistant","tool_calls":[{"id":"a"}]${empty} }`, echoed),
    )
    // Behind what is cut at the end of a message, too.
    const own = `{"role":"assistant","content":"hi","reasoning_details":[${sealed}]}`
    expect(edited(around(own), always)).toBe(around(`{"role":"assistant","content":"hi"${empty}}`))
  })

  test('pitfall 79: reasoning with our signature is removed, and a provider’s signature is kept', () => {
    const sent = (...details: string[]) => edited(around(user, thoughtful(`[${details.join(',')}]`)), {})
    expect(sent(own, real, sealed)).toBe(around(user, thoughtful(`[${real}]`)))
    expect(sent(real)).toBe(around(user, thoughtful(`[${real}]`)))
    const proof = (signature: string) => `"extra_content":{"google":{"thought_signature":"${signature}"}}`
    const calls = (...members: string[]) => `{"role":"assistant","tool_calls":[{${members.join(',')}}]}`
    expect(edited(around(calls('"id":"a"', proof('tg1.x'), '"n":1.0')), {})).toBe(around(calls('"id":"a"', '"n":1.0')))
    expect(edited(around(calls('"id":"tg1."', proof('Eq'))), {})).toBe(around(calls('"id":"tg1."', proof('Eq'))))
    expect(sent(own, sealed)).toBe(
      around(user, '{"role":"assistant","reasoning_content":"hm", "content":"hi","tool_calls":[{"id":"a","n":1.0}]}'),
    )
  })
})

describe('calls and results', () => {
  /** Mistral's. */
  const nine: TargetRules = { toolIdPattern: /^[A-Za-z0-9]{9}$/, toolIdMax: 9, assistantAfterTool: true }
  const around = (...messages: string[]) => `{"model":"up","messages":[ ${messages.join(' , ')} ],"temperature":1.0}`
  const user = '{"role":"user","content":"as a \\"tool\\" with \\"tool_calls\\" I say"}'
  const system = '{"role":"developer","content":"be kind"}'
  const calls = (...ids: string[]) =>
    `{"role":"assistant","content":null,"tool_calls":[${ids.map((id) => `{"n":1.0, "id" : "${id}"}`).join(', ')}]}`
  const result = (id: string) => `{"tool_call_id": "${id}","role":"tool","content":"ok"}`
  const bridge = '{"role":"assistant","content":"OK."}'
  const long = 'toolu_01A09q90qw90lq917835lq9'
  // The first nine digits of its SHA-256.
  const short = new Bun.CryptoHasher('sha256').update(long).digest('hex').slice(0, 9)

  test('pitfall 48: an id that the host refuses is rewritten in both places, and nothing else is', () => {
    const body = around(user, calls(long, 'abc123XYZ'), result('abc123XYZ'), result(long))
    const sent = around(user, calls(short, 'abc123XYZ'), result('abc123XYZ'), result(short))
    expect(edited(body, nine)).toBe(sent)
    expect(edited(body, {})).toBe(body)
  })

  test('pitfall 48: an id that is used in two turns gets another one in the second, which its result follows', () => {
    const sent = JSON.parse(edited(around(user, calls(long), result(long), calls(long), result(long)), nine))
    const [first, second] = [1, 3].map((i) => [sent.messages[i].tool_calls[0].id, sent.messages[i + 1].tool_call_id])
    expect(first).toEqual([short, short])
    expect(second?.[0]).toMatch(/^[A-Za-z0-9]{9}$/)
    expect(second).toEqual([second?.[0], second?.[0]])
    expect(second?.[0]).not.toBe(short)
  })

  test('pitfall 48: a result without a call, and ids that are none, are left to the host', () => {
    const odd = '{"role":"assistant","tool_calls":[{"id":7},{},null]}'
    const body = around(user, odd, result('lost'), '{"role":"tool"}', calls('abc123XYZ'), result('lost'))
    expect(edited(body, nine)).toBe(body)
  })

  test('pitfall 33: a short assistant message is added between a result and a user message', () => {
    const turn = (id: string) => [calls(id), result(id)]
    const bodyWith = (next: string) =>
      around(
        ...[user, ...turn('aaaaaaaa1'), next, user],
        ...[...turn('aaaaaaaa2'), bridge, user],
        ...[...turn('aaaaaaaa3'), system, next, ...turn('aaaaaaaa4')],
      )
    const body = bodyWith(user)
    expect(edited(body, nine)).toBe(bodyWith(`${bridge},${user}`))
    expect(edited(body, {})).toBe(body)
  })
})

test.each([
  ['"tools":[{}]', true, undefined],
  ['"functions":[{}]', true, undefined],
  ['"tools":[ ]', false, undefined],
  ['"tools":null,"reasoning_effort":"low"', false, 'on'],
  ['"reasoning_effort":"none"', false, 'off'],
  ['"reasoning_effort":null', false, undefined],
] as const)('the envelope of %s says whether tools and reasoning are wanted', (members, offersTools, reasoning) => {
  expect(envelopeOf(`{"model":"m",${plain},${members}}`)).toMatchObject({ envelope: { offersTools, reasoning } })
})

describe('unpaid models', () => {
  const body = `{"model":"m","models":["x/dear"],"route":"fallback",${plain},"preset":"mine"}`
  const edits = { upstreamModel: 'up', defaultOutputCap: undefined, rules: {} }

  test('are removed with a warning', () => {
    const { body: sent, warnings } = editRequest(envelopeOf(body), edits)
    expect(new TextDecoder().decode(sent)).toBe(`{"model":"up",${plain}}`)
    expect(warnings.map(({ code }) => code)).toEqual(['preset_dropped'])
  })

  test('are not asked by tools and plugins either', () => {
    const tool = '{"type":"function","function":{"name":"f","parameters":{"properties":{"model":{}}}}}'
    const fusion = '{"type":"openrouter:fu\\u0073ion","parameters":{"model":"x/dear"}}'
    const given = `{"model":"m",${plain},"tools":[${tool},${fusion}],"plugins":[{"id":"fusion"}]}`
    const { body: sent, warnings } = editRequest(envelopeOf(given), edits)
    expect(new TextDecoder().decode(sent)).toBe(`{"model":"up",${plain},"tools":[${tool}]}`)
    expect(warnings.map(({ code }) => code)).toEqual(['tool_dropped', 'plugins_dropped'])
  })

  test('are kept if the workspace uses its own credential', () => {
    const { body: sent, warnings } = editRequest(envelopeOf(body), { ...edits, isOwn: true })
    expect(new TextDecoder().decode(sent)).toBe(`{"model":"up",${plain},"preset":"mine"}`)
    expect(warnings).toEqual([])
  })
})
