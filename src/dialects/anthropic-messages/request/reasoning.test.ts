import { describe, expect, test } from 'bun:test'
import { assistant, call, models, renderMessagesBody, result, user } from '../../../../test/parts/translation.ts'
import type { AssistantBlock, ReasoningSettings, Turn } from '../../canonical/conversation.ts'
import { writeSignature } from '../../canonical/signature.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'

const big = 100_000
function asked(reasoning: ReasoningSettings | undefined, rules: TargetRules, outputCap = big) {
  const { body, warnings } = renderMessagesBody({ reasoning, outputCap }, rules)
  return { thinking: body.thinking, effort: body.output_config?.effort, warnings }
}
const clamped = ['effort_adjusted;/reasoning_effort']

describe('no reasoning', () => {
  test('sends nothing if the request does not mention reasoning', () => {
    for (const rules of Object.values(models)) {
      expect(asked(undefined, rules)).toEqual({ thinking: undefined, effort: undefined, warnings: [] })
    }
  })

  test('vector 30: none is what each model has for it', () => {
    const none = { effort: 'none' } as const
    expect(asked(none, models.sonnet5)).toEqual({ thinking: { type: 'disabled' }, effort: undefined, warnings: [] })
    expect(asked(none, models.sonnet55)).toEqual({
      thinking: { type: 'between_tools' },
      effort: undefined,
      warnings: [],
    })
    expect(asked(none, models.opus55)).toEqual({
      thinking: undefined,
      effort: 'low',
      warnings: ['reasoning_not_disabled;/reasoning_effort'],
    })
    expect(asked(none, models.s45).thinking).toEqual({ type: 'disabled' })
  })

  test('a word on whether it is shown does not turn it on', () => {
    const nothing = { thinking: undefined, effort: undefined, warnings: [] }
    for (const visible of [true, false]) {
      expect(asked({ visible }, {})).toEqual(nothing)
      expect(asked({ visible }, models.opus48)).toEqual(nothing)
      expect(asked({ visible }, models.s45)).toEqual(nothing)
      expect(asked({ visible }, { thinking: [], efforts: [] })).toEqual(nothing)
    }
    expect(asked({ visible: false }, models.opus55)).toEqual(nothing)
    expect(asked({ visible: true }, models.opus55).thinking).toEqual({ type: 'adaptive', display: 'summarized' })
  })

  test('pitfall 20: an explicit off never turns into adaptive', () => {
    expect(asked({ mode: 'off' }, models.opus48).thinking).toEqual({ type: 'disabled' })
    expect(asked({ mode: 'off' }, { thinking: [], thinksByDefault: false, efforts: [] })).toEqual({
      thinking: undefined,
      effort: undefined,
      warnings: [],
    })
  })
})

describe('models that reason as they see fit', () => {
  test('vector 31: where they do not by default, the mode is sent with the effort', () => {
    expect(asked({ effort: 'high' }, models.opus48)).toEqual({
      thinking: { type: 'adaptive' },
      effort: 'high',
      warnings: [],
    })
    expect(asked({ effort: 'high' }, models.opus55)).toEqual({ thinking: undefined, effort: 'high', warnings: [] })
  })

  test('pitfall 23: an effort is brought down to one the model knows, with a warning', () => {
    expect(asked({ effort: 'minimal' }, models.opus55)).toEqual({ thinking: undefined, effort: 'low', warnings: [] })
    expect(asked({ effort: 'xhigh' }, models.opus46)).toEqual({
      thinking: { type: 'adaptive' },
      effort: 'high',
      warnings: clamped,
    })
    expect(asked({ effort: 'max' }, models.opus46).effort).toBe('max')
    expect(asked({ effort: 'max', mode: 'between-tools' }, models.sonnet55)).toEqual({
      thinking: { type: 'between_tools' },
      effort: 'high',
      warnings: clamped,
    })
  })

  test('a budget becomes an effort', () => {
    const effort = (budgetTokens: number) => asked({ budgetTokens, mode: 'on' }, models.opus55).effort
    expect([2048, 2049, 8193, 20_000, 20_001].map(effort)).toEqual(['low', 'medium', 'high', 'high', 'xhigh'])
  })

  test('requests readable reasoning only if the caller did', () => {
    expect(asked({ effort: 'low', visible: true }, models.opus55).thinking).toEqual({
      type: 'adaptive',
      display: 'summarized',
    })
    expect(asked({ effort: 'low', visible: false }, models.opus48).thinking).toEqual({
      type: 'adaptive',
      display: 'omitted',
    })
    expect(asked({ effort: 'low', visible: false }, models.opus55).thinking).toBeUndefined()
  })
})

describe('models that know a budget', () => {
  const enabled = (budget_tokens: number) => ({ type: 'enabled', budget_tokens })

  test('pitfall 20: each effort has its budget', () => {
    const budget = (effort: NonNullable<ReasoningSettings['effort']>) =>
      asked({ effort }, models.s45).thinking.budget_tokens
    expect((['minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const).map(budget)).toEqual([
      2048, 2048, 8192, 16_384, 24_576, 32_768,
    ])
  })

  test('vector 31: the budget stays below the output cap, and is left out with a warning where none fits', () => {
    expect(asked({ effort: 'high' }, models.s45, 4000)).toEqual({
      thinking: enabled(3999),
      effort: undefined,
      warnings: ['reasoning_leaves_little_room;/reasoning_effort'],
    })
    expect(asked({ effort: 'high' }, models.s45, 1000)).toEqual({
      thinking: undefined,
      effort: undefined,
      warnings: ['reasoning_dropped;/reasoning_effort'],
    })
  })

  test('a budget that leaves fewer than 256 tokens for the answer is named', () => {
    const codes = (budgetTokens: number) =>
      asked({ budgetTokens, mode: 'on' }, models.s45, 8000).warnings.map((each) => each.split(';')[0])
    expect(codes(8000)).toEqual(['reasoning_budget_clamped', 'reasoning_leaves_little_room'])
    expect([codes(7745), codes(7744)]).toEqual([['reasoning_leaves_little_room'], []])
  })

  test('pitfall 19: a budget of 500 is raised to the least the provider takes', () => {
    expect(asked({ budgetTokens: 500, mode: 'on' }, models.s45)).toEqual({
      thinking: enabled(1024),
      effort: undefined,
      warnings: ['reasoning_budget_clamped;/reasoning_effort'],
    })
    expect(asked({ budgetTokens: 500, mode: 'on' }, models.s45, 1025).thinking).toEqual(enabled(1024))
    expect(asked({ budgetTokens: 500, mode: 'on' }, models.s45, 1024).thinking).toBeUndefined()
  })

  test('one with both dials gets both', () => {
    expect(asked({ effort: 'max' }, models.opus45)).toEqual({
      thinking: enabled(32_768),
      effort: 'high',
      warnings: clamped,
    })
  })

  test('sends no budget if the model decides, and a medium one if reasoning is on', () => {
    expect(asked({ mode: 'adaptive' }, models.s45).thinking).toBeUndefined()
    expect(asked({ mode: 'on' }, models.s45).thinking).toEqual(enabled(8192))
  })

  test('does not continue with thinking after calls that were made without it', () => {
    const turns = [user('u'), assistant(call('c')), user(result('c'))]
    const parts = { turns, reasoning: { effort: 'low' }, outputCap: big } as const
    const { body, warnings } = renderMessagesBody(parts, models.s45)
    expect(body.thinking).toEqual({ type: 'disabled' })
    expect(warnings).toEqual(['reasoning_dropped;/reasoning_effort'])
    expect(renderMessagesBody(parts, models.opus48).body.thinking).toEqual({ type: 'adaptive' })
    const thought = assistant({ kind: 'thinking', text: 't', signature: 's' }, call('c'))
    const signed = { ...parts, turns: [user('u'), thought, user(result('c'))] }
    expect(renderMessagesBody(signed, models.s45).body.thinking).toEqual(enabled(2048))
  })
})

test('lets the provider drop thinking that no longer fits if it can, with the beta flag for it', () => {
  const thought = assistant({ kind: 'thinking', text: 't', signature: 's' }, 'a')
  const rules = { ...models.opus55, thinkingBindingControls: true }
  const { body, rendered } = renderMessagesBody({ turns: [user('u'), thought, user('v')] }, rules)
  expect(body.thinking).toEqual({ type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } })
  expect(rendered.headers['anthropic-beta']).toBe('thinking-binding-controls-2026-08-01')
  // Before there is any thinking, too, so that the beginning of the request stays the same when it comes.
  const plain = renderMessagesBody({}, rules)
  expect(plain.body.thinking).toEqual(body.thinking)
  expect(plain.rendered.headers['anthropic-beta']).toBe('thinking-binding-controls-2026-08-01')
  const other = renderMessagesBody({}, models.opus55)
  expect(other.body.thinking).toBeUndefined()
  expect(other.rendered.headers['anthropic-beta']).toBeUndefined()
})

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
  expect(body.messages[1].content.map(({ type }: { type: string }) => type)).toEqual(
    'thinking text thinking tool_use'.split(' '),
  )
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

test('drops the thinking of all turns before one whose thinking is lost, and keeps later ones', () => {
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
