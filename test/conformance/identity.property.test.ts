// A conversation that is rendered and parsed again is unchanged, in each dialect and through both, whatever the
// conversation; and nothing that a program could send makes a parser or a renderer throw.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anthropicMessages } from '../../src/dialects/anthropic-messages/index.ts'
import type { AssistantBlock, Conversation, Turn, UserBlock } from '../../src/dialects/canonical/conversation.ts'
import type { TargetRules } from '../../src/dialects/canonical/target-rules.ts'
import type { RenderedRequest, Target } from '../../src/dialects/canonical/translation.ts'
import type { Dialect } from '../../src/dialects/dialect.ts'
import { openaiChat } from '../../src/dialects/openai-chat/index.ts'
import { Failure } from '../../src/kernel/failure.ts'
import { rulesFor } from '../../src/providers/rules/rules-for.ts'
import { anyConversation } from '../parts/any-conversation.ts'

const targetOf = (rules: TargetRules): Target => ({
  upstreamModel: 'up-1',
  issuer: 'acme/any',
  rules,
  defaultOutputCap: undefined,
  maxOutputTokens: undefined,
})

/** A model that takes everything its dialect can say. */
const willing: Readonly<Record<'chat' | 'messages', TargetRules>> = {
  chat: {
    efforts: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
    topK: true,
    documents: true,
    cacheStyle: 'breakpoint',
    midSystem: true,
    toolIdMax: 64,
  },
  messages: {
    efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
    thinking: ['adaptive', 'disabled'],
    thinksByDefault: false,
    topK: true,
    midSystem: true,
    strictTools: true,
  },
}

function write(dialect: Dialect, conversation: Conversation, rules: TargetRules): RenderedRequest {
  const rendered = dialect.translation.renderRequest(conversation, targetOf(rules))
  if (rendered instanceof Failure) throw new Error(`refused: ${rendered.message}`)
  return rendered
}

function read(dialect: Dialect, body: Uint8Array<ArrayBuffer>): Conversation {
  const envelope = dialect.readEnvelope(body, new Headers({ 'anthropic-version': '2023-06-01' }))
  if (envelope instanceof Failure) throw new Error(`envelope: ${envelope.message}`)
  const parsed = dialect.translation.parseRequest(envelope)
  if (parsed instanceof Failure) throw new Error(`refused: ${parsed.message}`)
  return parsed.conversation
}

/**
 * A conversation as far as both dialects can tell it. Turns of one role in a row are one turn, with results first and
 * a system turn behind the user's; an effort of none is a mode; auto is the default choice, and how many calls there may
 * be says nothing where there may be none; JSON pointers are dropped.
 */
function normal(conversation: Conversation, { marks = true, thinking = true } = {}): object {
  const { pointers: _, turns, tools, system, reasoning, outputFormat, parallelTools, ...rest } = conversation
  const strip = (value: unknown): unknown =>
    JSON.parse(
      JSON.stringify(value, (name, member) =>
        name === 'pointer' || (!marks && name === 'cacheMark') ? undefined : member,
      ),
    )
  const said = turns.map((turn) => (thinking ? turn : withoutThinking(turn)))
  return {
    ...rest,
    toolChoice: rest.toolChoice?.kind === 'auto' ? undefined : rest.toolChoice,
    parallelTools: rest.toolChoice?.kind === 'none' ? undefined : parallelTools,
    tools: strip(tools),
    system: strip(system),
    turns: strip(joined(said)),
    reasoning: reasoning?.mode === 'off' ? { effort: 'none' } : reasoning?.effort && { effort: reasoning.effort },
    outputFormat: outputFormat?.kind === 'json-schema' ? outputFormat.schema : outputFormat,
  }
}

function withoutThinking(turn: Turn): Turn {
  if (turn.role !== 'assistant') return turn
  return { role: 'assistant', blocks: turn.blocks.filter(({ kind }) => kind !== 'thinking') }
}

function joined(turns: readonly Turn[]): object[] {
  const list: { role: string; blocks: (UserBlock | AssistantBlock)[] }[] = []
  for (const { role, blocks } of turns) {
    const last = list.at(-1)
    if (last?.role === role) last.blocks.push(...blocks)
    else list.push({ role, blocks: [...blocks] })
  }
  for (const turn of list) {
    const results = turn.blocks.filter(({ kind }) => kind === 'tool-result')
    turn.blocks = [...results, ...turn.blocks.filter(({ kind }) => kind !== 'tool-result')]
  }
  return list
}

/** A provider keeps four marks, the last ones. */
const markCount = (conversation: Conversation): number => JSON.stringify(conversation).split('"cacheMark"').length - 1
const unmark = (name: string, member: unknown): unknown => (name === 'cacheMark' ? undefined : member)
const runs = { numRuns: 150 }

describe('written and read again', () => {
  test('chat completions', () => {
    fc.assert(
      fc.property(anyConversation, (conversation) => {
        const { body, warnings } = write(openaiChat, conversation, willing.chat)
        const options = { marks: false, thinking: false }
        expect(normal(read(openaiChat, body), options)).toEqual(normal(conversation, options))
        // Reasoning of somebody else, and marks on tools and calls, are all that this dialect has no place for.
        for (const { code } of warnings) expect(['thinking_dropped', 'cache_mark_dropped']).toContain(code)
      }),
      runs,
    )
  })

  test('messages', () => {
    fc.assert(
      fc.property(anyConversation, (conversation) => {
        fc.pre(markCount(conversation) <= 4)
        const { body, warnings } = write(anthropicMessages, conversation, willing.messages)
        expect(normal(read(anthropicMessages, body))).toEqual(normal(conversation))
        expect(warnings).toEqual([])
      }),
      runs,
    )
  })

  test('from either dialect to the other and back', () => {
    fc.assert(
      fc.property(anyConversation, fc.boolean(), (conversation, chatFirst) => {
        const way = chatFirst ? ([openaiChat, anthropicMessages] as const) : ([anthropicMessages, openaiChat] as const)
        const once = read(way[0], write(way[0], conversation, rulesOf(way[0])).body)
        const twice = read(way[1], write(way[1], once, rulesOf(way[1])).body)
        const options = { marks: false, thinking: false }
        expect(normal(twice, options)).toEqual(normal(conversation, options))
      }),
      runs,
    )
  })
})

function rulesOf(dialect: Dialect): TargetRules {
  return dialect === openaiChat ? willing.chat : willing.messages
}

/** Ids may differ where a host wants them in its own form. */
function callOrResult(block: Turn['blocks'][number]): string[] {
  if (block.kind === 'tool-call') return [`${block.name} ${block.arguments}`]
  return block.kind === 'tool-result' ? ['result'] : []
}

const realModels = {
  chat: [
    'gpt-4o',
    'o3',
    'gpt-5',
    'gpt-5.4',
    'gpt-5.6',
    'gpt-6.1-sol',
    'deepseek-v4',
    'kimi-k3',
    'mistral-large',
    'any',
  ],
  messages: ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-opus-4-8', 'claude-sonnet-4-5', 'claude-3-5-haiku', 'any'],
}

describe.each([
  { name: 'chat', dialect: openaiChat },
  { name: 'messages', dialect: anthropicMessages },
] as const)('for real models of $name', ({ name, dialect }) => {
  const rules = fc
    .constantFrom(...realModels[name])
    .map((upstreamModel) => rulesFor({ dialect: dialect.id, upstreamModel, endpointRules: undefined }))

  test('a conversation is rendered or refused by name, and what is rendered can be read', () => {
    fc.assert(
      fc.property(anyConversation, rules, (conversation, taken) => {
        const rendered = dialect.translation.renderRequest(conversation, targetOf(taken))
        if (rendered instanceof Failure) {
          expect([rendered.code, typeof rendered.facts.param]).toEqual(['INVALID_REQUEST', 'string'])
          return
        }
        const again = read(dialect, rendered.body)
        const ids = (turns: readonly Turn[]) => turns.flatMap(({ blocks }) => blocks.flatMap(callOrResult))
        expect(ids(again.turns)).toEqual(ids(conversation.turns))
      }),
      runs,
    )
  })

  test('a conversation that grows keeps its beginning, byte for byte', () => {
    fc.assert(
      fc.property(anyConversation, rules, (marked, taken) => {
        // Marks move with the conversation; that is what they are for.
        const conversation = JSON.parse(JSON.stringify(marked, unmark)) as Conversation
        const ends = conversation.turns.flatMap((turn, at) =>
          turn.role === 'user' && conversation.turns[at + 1]?.role !== 'system' ? [at + 1] : [],
        )
        let before: { head: object; messages: string } | undefined
        for (const end of ends) {
          const grown = { ...conversation, turns: conversation.turns.slice(0, end) }
          const rendered = dialect.translation.renderRequest(grown, targetOf(taken))
          if (rendered instanceof Failure) return
          const json = new TextDecoder().decode(rendered.body)
          const { system, tools } = JSON.parse(json) as { system?: unknown; tools?: unknown }
          const now = { head: { system, tools }, messages: json.slice(json.indexOf('"messages":['), -']}'.length) }
          if (before) expect<object>(now.head).toEqual(before.head)
          expect(now.messages).toStartWith(before?.messages ?? '')
          before = now
        }
      }),
      { numRuns: 80 },
    )
  })
})
