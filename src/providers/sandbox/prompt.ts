// A parsed conversation as the sandbox models see it, its token count, and the rules that both providers apply to a
// conversation: every tool call is answered right after it, and Anthropic refuses empty text.

import type { AssistantBlock, Conversation, Tool, UserBlock } from '../../dialects/canonical/conversation.ts'
import type { RenderContext } from '../../dialects/canonical/translation.ts'
import { paramOf } from '../../dialects/request/fields.ts'
import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import { countTokens, mediaTokens, overheadTokens } from './tokens.ts'

/** A piece of the prompt, in the order in which a cache reads it: tools, system, turns. */
export interface Passage {
  readonly from: 'tool' | 'system' | 'user' | 'assistant' | 'result'
  /** The turn's index; -1 for tools and system text. */
  readonly turn: number
  readonly text: string
  readonly tokens: number
  readonly mark: 'short' | 'long' | undefined
}

export interface Prompt {
  readonly conversation: Conversation
  readonly model: string
  readonly outputCap: number | undefined
  readonly passages: readonly Passage[]
  readonly tokens: number
  /** Text of the last user turn that has any. */
  readonly lastUserText: string
  /** Results that follow the last assistant turn. */
  readonly toolResults: readonly string[]
  /** The tools that the tool choice allows. */
  readonly tools: readonly Tool[]
  /** How the reply is written; see ParsedRequest. */
  readonly form?: Pick<RenderContext, 'callForms' | 'echo' | 'wantsStreamUsage'>
}

export function readPrompt(conversation: Conversation, model: string, outputCap: number | undefined): Prompt {
  const passages = passagesOf(conversation)
  const texts = conversation.turns.flatMap((turn) => (turn.role === 'user' ? textOf(turn.blocks) : ''))
  const lastAssistant = conversation.turns.findLastIndex(({ role }) => role === 'assistant')
  const results = conversation.turns.slice(lastAssistant + 1).flatMap(({ blocks }) => [...blocks])
  return {
    conversation,
    model,
    outputCap,
    passages,
    tokens: passages.reduce((sum, { tokens }) => sum + tokens, 0),
    lastUserText: texts.findLast((text) => text !== '') ?? '',
    toolResults: results.flatMap((block) => (block.kind === 'tool-result' ? [textOf(block.content)] : [])),
    tools: allowedTools(conversation),
  }
}

type Block = UserBlock | AssistantBlock

function textOf(blocks: readonly Block[]): string {
  return blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : [])).join('\n')
}

function allowedTools({ tools, toolChoice }: Conversation): readonly Tool[] {
  if (toolChoice?.kind === 'named') return tools.filter(({ name }) => name === toolChoice.name)
  return toolChoice?.kind === 'allowed' ? tools.filter(({ name }) => toolChoice.names.includes(name)) : tools
}

function passagesOf({ tools, system, turns, automaticCache }: Conversation): Passage[] {
  const passages = [
    ...tools.map((tool): Passage => {
      const schema = (tool.kind === 'function' ? tool.schema : tool.grammar) ?? '{}'
      const text = `${tool.name} ${tool.description ?? ''} ${schema}`
      return { from: 'tool', turn: -1, text, tokens: overheadTokens + countTokens(text), mark: tool.cacheMark?.life }
    }),
    ...blockPassages(system, 'system', -1),
    ...turns.flatMap(({ role, blocks }, turn) => blockPassages(blocks, role, turn)),
  ]
  // A mark on the whole request applies to its last block.
  const last = passages.at(-1)
  if (automaticCache && last) passages[passages.length - 1] = { ...last, mark: last.mark ?? automaticCache.life }
  return passages
}

/** The first block of a turn carries the turn's overhead, and every tool result has its own. */
function blockPassages(blocks: readonly Block[], role: 'system' | 'user' | 'assistant', turn: number): Passage[] {
  let hasOverhead = false
  return blocks.map((block) => {
    const isResult = block.kind === 'tool-result'
    const text = blockText(block)
    const overhead = isResult || !hasOverhead ? overheadTokens : 0
    hasOverhead ||= !isResult
    const tokens = overhead + (text === undefined ? mediaTokens : countTokens(text))
    const mark = 'cacheMark' in block ? block.cacheMark?.life : undefined
    return { from: isResult ? 'result' : role, turn, text: text ?? JSON.stringify(block), tokens, mark }
  })
}

/** undefined = media. */
function blockText(block: Block): string | undefined {
  switch (block.kind) {
    case 'text':
    case 'thinking':
    case 'refusal':
      return block.text
    case 'tool-call':
      return `${block.name} ${block.arguments}`
    case 'tool-result':
      return textOf(block.content)
    default:
      return undefined
  }
}

/** Every call is answered by results right after it, and every result answers such a call. */
export function checkToolResults({ turns }: Conversation): Failure | undefined {
  let unanswered = new Set<string>()
  for (const { role, blocks, pointer = '' } of turns) {
    const param = paramOf(pointer)
    for (const block of blocks) {
      if (block.kind === 'tool-result') {
        if (!unanswered.delete(block.callId)) {
          return invalidRequest(
            `${param}: the tool result ${block.callId} does not answer a call right before it.`,
            param,
          )
        }
      } else if (block.kind === 'tool-call') {
        if (unanswered.has(block.id)) return invalidRequest(`${param}: tool call ids must be unique.`, param)
        unanswered = new Set([...unanswered, block.id])
      } else if (role === 'user' && unanswered.size > 0) {
        return unansweredCalls(unanswered, param)
      }
    }
    if (role === 'assistant' && unanswered.size > 0 && !blocks.some(({ kind }) => kind === 'tool-call')) {
      return unansweredCalls(unanswered, param)
    }
  }
  return unanswered.size > 0 ? unansweredCalls(unanswered, 'messages') : undefined
}

function unansweredCalls(ids: ReadonlySet<string>, param: string): Failure {
  const text = `${param}: these tool calls have no result right after them: ${[...ids].join(', ')}.`
  return invalidRequest(text, param)
}

/** Anthropic refuses empty turns and blank text. */
export function checkTexts({ turns }: Conversation): Failure | undefined {
  for (const { blocks, pointer = '' } of turns) {
    const param = paramOf(pointer)
    if (blocks.length === 0) return invalidRequest(`${param}: all messages must have non-empty content`, param)
    const blank = blocks.findIndex((block) => block.kind === 'text' && block.text.trim() === '')
    if (blank >= 0) {
      const at = `${param}.content[${blank}]`
      return invalidRequest(`${at}: text content blocks must contain non-whitespace text`, at)
    }
  }
  return undefined
}
