// Random requests that a sensible program could send: every call is answered, every name is legal, and whatever a
// dialect cannot say at all is left to the fixtures.

import { expect } from 'bun:test'
import fc from 'fast-check'
import type {
  AssistantBlock,
  CacheMark,
  Conversation,
  FunctionTool,
  TextBlock,
  Turn,
  UserBlock,
} from '../../src/dialects/canonical/conversation.ts'
import type { Target, Translation } from '../../src/dialects/canonical/translation.ts'

const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => text.trim() !== '')
type Life = CacheMark['life']

/** Providers take a longer life only in front of shorter ones, so that a conversation has marks of one life. */
const marked = (life: Life): fc.Arbitrary<{ cacheMark?: CacheMark }> =>
  fc.nat(7).map((dice) => (dice === 0 ? { cacheMark: { life, ...(life === 'long' && { isHour: true }) } } : {}))
const textOf = (life: Life): fc.Arbitrary<TextBlock> =>
  fc.tuple(words, marked(life)).map(([said, mark]) => ({ kind: 'text', text: said, ...mark }))
const plainText: fc.Arbitrary<TextBlock> = words.map((said) => ({ kind: 'text', text: said }))

/** Formats are recognised by their first bytes. */
const png = Buffer.from('\x89PNG\r\n\x1a\n pixels', 'latin1').toString('base64')
const pdf = Buffer.from('%PDF-1.4 pages').toString('base64')
const image: fc.Arbitrary<UserBlock> = fc.constantFrom<UserBlock>(
  { kind: 'image', source: { kind: 'data', mediaType: 'image/png', base64: png } },
  { kind: 'image', source: { kind: 'url', url: 'https://example.com/a.png' } },
)
const document: fc.Arbitrary<UserBlock> = fc.constant({
  kind: 'document',
  source: { kind: 'data', mediaType: 'application/pdf', base64: pdf },
  title: 'r.pdf',
})
const userBlocksOf = (life: Life) =>
  fc.array(fc.oneof({ weight: 3, arbitrary: textOf(life) }, image, document), { minLength: 1, maxLength: 3 })

/** JSON as people and models write it; what it says must come through, and how it is spelled. */
const argumentText = fc.oneof(
  fc.constantFrom('{}', '{"n":12345678901234567890}', '{ "b": 1.0, "a": [] }', '{"10":1,"2":"\\u00e9"}'),
  fc.dictionary(words, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }).map((value) => JSON.stringify(value)),
)
const toolNames = ['look', 'write_file', 'mcp__server__do'] as const

interface Round {
  readonly question: readonly UserBlock[]
  readonly aside: TextBlock | undefined
  readonly thought: { readonly text: string; readonly signature: string } | undefined
  readonly answer: TextBlock | undefined
  readonly calls: readonly {
    readonly name: string
    readonly arguments: string
    readonly result: TextBlock | undefined
  }[]
  readonly reversed: boolean
}

const roundOf = (life: Life): fc.Arbitrary<Round> =>
  fc.record({
    question: userBlocksOf(life),
    aside: fc.option(plainText, { nil: undefined, freq: 5 }),
    thought: fc.option(fc.record({ text: words, signature: fc.base64String({ minLength: 8, maxLength: 24 }) }), {
      nil: undefined,
    }),
    answer: fc.option(plainText, { nil: undefined }),
    calls: fc.array(
      fc.record({
        name: fc.constantFrom(...toolNames),
        arguments: argumentText,
        result: fc.option(plainText, { nil: undefined }),
      }),
      { maxLength: 3 },
    ),
    reversed: fc.boolean(),
  })

/** The turns of one round: a question, an answer with calls or without, and the results in any order. */
function turnsOf({ question, aside, thought, answer, calls, reversed }: Round, at: number): Turn[] {
  const said: AssistantBlock[] = [
    ...(thought ? [{ kind: 'thinking', ...thought } as const] : []),
    ...(answer ? [answer] : calls.length > 0 ? [] : [{ kind: 'text', text: 'Well.' } as const]),
    ...calls.map(({ name, arguments: json }, n): AssistantBlock => {
      return { kind: 'tool-call', id: `call_${at}_${n}`, name, arguments: json, custom: false }
    }),
  ]
  const results = calls.map(({ result }, n): UserBlock => {
    return { kind: 'tool-result', callId: `call_${at}_${n}`, content: result ? [result] : [], isError: false }
  })
  return [
    { role: 'user', blocks: question },
    ...(aside ? [{ role: 'system', blocks: [aside] } as const] : []),
    { role: 'assistant', blocks: said },
    ...(results.length > 0
      ? [
          { role: 'user', blocks: reversed ? results.reverse() : results } as const,
          { role: 'assistant', blocks: [{ kind: 'text', text: 'Done.' }] } as const,
        ]
      : []),
  ]
}

const schemas = [
  '{"type":"object","properties":{}}',
  '{ "type":"object", "properties":{"n":{"type":"integer","default":12345678901234567890}}, "required":[] }',
] as const

const toolsOf = (life: Life): fc.Arbitrary<FunctionTool[]> =>
  fc.tuple(
    ...toolNames.map(
      (name): fc.Arbitrary<FunctionTool> =>
        fc
          .record({
            description: fc.option(words, { nil: undefined }),
            schema: fc.constantFrom(...schemas),
            mark: marked(life),
          })
          .map(({ description, schema, mark }) => ({
            kind: 'function',
            name,
            description,
            schema,
            ...mark,
          })),
    ),
  )

const settings = fc.record({
  toolChoice: fc.constantFrom<Conversation['toolChoice']>(
    undefined,
    { kind: 'auto' },
    { kind: 'none' },
    { kind: 'required' },
    { kind: 'named', name: 'look' },
  ),
  parallelTools: fc.constantFrom(undefined, false),
  sampling: fc.record(
    { temperature: fc.constantFrom(0, 0.25, 1), topP: fc.constantFrom(0.1, 0.9), topK: fc.constantFrom(1, 40) },
    { requiredKeys: [] },
  ),
  outputCap: fc.integer({ min: 1, max: 100_000 }),
  stop: fc.uniqueArray(words, { maxLength: 4 }),
  reasoning: fc.constantFrom<Conversation['reasoning']>(
    undefined,
    { effort: 'none' },
    { effort: 'low' },
    { effort: 'high' },
    { effort: 'max' },
  ),
  endUserId: fc.option(fc.stringMatching(/^[a-z0-9]{1,64}$/), { nil: undefined }),
  outputFormat: fc.constantFrom<Conversation['outputFormat']>(undefined, {
    kind: 'json-schema',
    schema: '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}',
  }),
})

const conversationsOf = (life: Life): fc.Arbitrary<Conversation> =>
  fc
    .tuple(
      fc.array(textOf(life), { maxLength: 2 }),
      fc.array(roundOf(life), { maxLength: 4 }),
      userBlocksOf(life),
      toolsOf(life),
      settings,
    )
    .map(([system, rounds, last, offered, chosen]) => ({
      ...chosen,
      // Models that reason take no sampling.
      sampling: chosen.reasoning === undefined || chosen.reasoning.effort === 'none' ? chosen.sampling : {},
      system,
      turns: [...rounds.flatMap(turnsOf), { role: 'user', blocks: last }],
      tools: offered,
      unsupported: [],
    }))

export const anyConversation: fc.Arbitrary<Conversation> = fc
  .constantFrom<Life[]>('short', 'long')
  .chain(conversationsOf)

/** The body that a renderer writes; a refusal fails the test. */
export const bodyWriter = (render: Translation['renderRequest']) => (conversation: Conversation, target: Target) => {
  const rendered = render(conversation, target)
  if (!('body' in rendered)) throw new Error(`refused: ${rendered.message}`)
  return new TextDecoder().decode(rendered.body)
}

/** The same history gives the same bytes, and a longer one begins with them. */
export function expectSteadyPrefix(bodyOf: ReturnType<typeof bodyWriter>, anyTarget: fc.Arbitrary<Target>): void {
  fc.assert(
    fc.property(anyConversation, anyTarget, (conversation, target) => {
      const json = bodyOf(conversation, target)
      expect(bodyOf(structuredClone(conversation), target)).toBe(json)
      const answer: Turn = { role: 'assistant', blocks: [{ kind: 'text', text: 'a' }] }
      const more: Turn = { role: 'user', blocks: [{ kind: 'text', text: 'more' }] }
      const grown = { ...conversation, turns: [...conversation.turns, answer, more] }
      // All but the brackets that close the list and the body.
      expect(bodyOf(grown, target)).toStartWith(json.slice(0, -2))
    }),
    { numRuns: 200 },
  )
}
