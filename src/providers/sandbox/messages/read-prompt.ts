// Reads a checked Messages request into a Prompt. Lenient: what checkRequest let pass is either understood or ignored.

import { type JsonObject, listMember, member, textMember, writeJson } from '../json-value.ts'
import {
  type CacheMark,
  type OfferedTool,
  type Passage,
  type Prompt,
  passage,
  type ReturnedThought,
} from '../prompt.ts'
import { mediaTokens } from '../token-count.ts'

/** Client tools with a dated type; their schema is the provider's, so they are called without arguments. */
const datedClientTool = /^(bash|text_editor|memory)_\d{8}$/

export function readPrompt(body: JsonObject): Prompt {
  const history = readHistory(body)
  const choice = member(body, 'tool_choice')
  const thinking = member(body, 'thinking')
  const cap = member(body, 'max_tokens')
  return {
    model: textMember(body, 'model') ?? '',
    stream: member(body, 'stream') === true,
    wantsStreamUsage: true,
    outputCap: typeof cap === 'number' ? cap : undefined,
    stopSequences: listMember(body, 'stop_sequences').filter((item) => typeof item === 'string'),
    passages: readPassages(body, history.passages),
    lastUserText: history.lastUserText,
    toolResults: history.toolResults,
    tools: readTools(body, textMember(choice, 'name')),
    callsTools: textMember(choice, 'type') !== 'none',
    callsInParallel: member(choice, 'disable_parallel_tool_use') !== true,
    thinks: textMember(thinking, 'type') !== 'disabled',
    hidesThinking: textMember(thinking, 'display') === 'omitted',
    returnedThoughts: history.thoughts,
    format: { json: false, schema: member(member(member(body, 'output_config'), 'format'), 'schema') },
  }
}

function readTools(body: JsonObject, chosen: string | undefined): OfferedTool[] {
  return listMember(body, 'tools').flatMap((tool): OfferedTool[] => {
    const name = textMember(tool, 'name')
    const type = textMember(tool, 'type') ?? 'custom'
    if (name === undefined || (type !== 'custom' && !datedClientTool.test(type))) return []
    if (chosen !== undefined && chosen !== name) return []
    return [{ name, schema: member(tool, 'input_schema'), takes: 'json' }]
  })
}

function markOf(block: unknown): CacheMark | undefined {
  const control = member(block, 'cache_control') ?? undefined
  if (control === undefined) return undefined
  return member(control, 'ttl') === '1h' ? 'long' : 'short'
}

function readPassages(body: JsonObject, history: readonly Passage[]): Passage[] {
  const tools = listMember(body, 'tools').map((tool) => {
    const text = `${textMember(tool, 'name') ?? ''} ${textMember(tool, 'description') ?? ''} ${writeJson(member(tool, 'input_schema') ?? {})}`
    return passage({ from: 'tool', turn: -1, text, mark: markOf(tool), opens: true })
  })
  const system = contentBlocks(body, 'system').map((block, index) =>
    passage({ from: 'system', turn: -1, ...blockFacts(block), opens: index === 0 }),
  )
  const passages = [...tools, ...system, ...history]
  // A mark on the whole request stands for one on its last block.
  const automatic = markOf(body)
  const last = passages.at(-1)
  return automatic && last ? [...passages.slice(0, -1), { ...last, mark: last.mark ?? automatic }] : passages
}

function contentBlocks(value: unknown, key: string): readonly unknown[] {
  const content = member(value, key)
  if (typeof content !== 'string') return listMember(value, key)
  return content === '' ? [] : [{ type: 'text', text: content }]
}

function readHistory(body: JsonObject) {
  const passages: Passage[] = []
  const thoughts: ReturnedThought[] = []
  let lastUserText = ''
  let toolResults: string[] = []
  for (const [turn, message] of listMember(body, 'messages').entries()) {
    const role = readRole(message)
    const blocks = contentBlocks(message, 'content')
    const text = textOf(blocks)
    if (role === 'user' && text !== '') lastUserText = text
    if (role === 'assistant') toolResults = []
    let opened = false
    for (const [index, block] of blocks.entries()) {
      const type = textMember(block, 'type')
      if (type === 'thinking') thoughts.push(readThought(block, `messages.${turn}.content.${index}`))
      const isResult = type === 'tool_result'
      if (isResult) toolResults.push(resultText(block))
      // Every result counts as a turn of its own, as it does on the other wire.
      passages.push(
        passage({ from: isResult ? 'result' : role, turn, ...blockFacts(block), opens: isResult || !opened }),
      )
      opened ||= !isResult
    }
  }
  return { passages, thoughts, lastUserText, toolResults }
}

function readRole(message: unknown): 'user' | 'assistant' | 'system' {
  const role = textMember(message, 'role')
  return role === 'assistant' || role === 'system' ? role : 'user'
}

function readThought(block: unknown, at: string): ReturnedThought {
  return { text: textMember(block, 'thinking') ?? '', signature: textMember(block, 'signature'), at }
}

function textOf(blocks: readonly unknown[]): string {
  return blocks
    .flatMap((block) => (textMember(block, 'type') === 'text' ? (textMember(block, 'text') ?? []) : []))
    .join('\n')
}

function resultText(block: unknown): string {
  return textOf(contentBlocks(block, 'content'))
}

function blockFacts(block: unknown): { text: string; tokens?: number; mark: CacheMark | undefined } {
  const mark = markOf(block)
  switch (textMember(block, 'type')) {
    case 'text':
      return { text: textMember(block, 'text') ?? '', mark }
    case 'thinking':
      return { text: textMember(block, 'thinking') ?? '', mark }
    case 'tool_use':
      return { text: `${textMember(block, 'name') ?? ''} ${writeJson(member(block, 'input') ?? {})}`, mark }
    case 'tool_result':
      return { text: resultText(block), mark }
    default:
      return { text: writeJson(block), tokens: mediaTokens, mark }
  }
}
