// Reads a checked chat request into a Prompt. Lenient: what checkRequest let pass is either understood or ignored.

import { type JsonObject, listMember, member, textMember, writeJson } from '../json-value.ts'
import { type CacheMark, type OfferedTool, type Passage, type Prompt, passage } from '../prompt.ts'
import { mediaTokens } from '../token-count.ts'

export function readPrompt(body: JsonObject): Prompt {
  const tools = listMember(body, 'tools').map(readTool)
  const history = readHistory(body)
  const stop = member(body, 'stop')
  const format = member(body, 'response_format')
  const cap = member(body, 'max_completion_tokens') ?? member(body, 'max_tokens')
  const choice = member(body, 'tool_choice')
  return {
    model: textMember(body, 'model') ?? '',
    stream: member(body, 'stream') === true,
    wantsStreamUsage: member(member(body, 'stream_options'), 'include_usage') === true,
    outputCap: typeof cap === 'number' ? cap : undefined,
    stopSequences:
      typeof stop === 'string' ? [stop] : listMember(body, 'stop').filter((item) => typeof item === 'string'),
    passages: [...listMember(body, 'tools').map(toolPassage), ...history.passages],
    lastUserText: history.lastUserText,
    toolResults: history.toolResults,
    tools: chosenTools(tools, choice),
    callsTools: choice !== 'none',
    callsInParallel: member(body, 'parallel_tool_calls') !== false,
    thinks: member(body, 'reasoning_effort') !== 'none',
    hidesThinking: false,
    returnedThoughts: [],
    format: {
      json: textMember(format, 'type') === 'json_object',
      schema: member(member(format, 'json_schema'), 'schema'),
    },
  }
}

function definitionOf(tool: unknown): unknown {
  return member(tool, member(tool, 'type') === 'custom' ? 'custom' : 'function')
}

function readTool(tool: unknown): OfferedTool {
  const definition = definitionOf(tool)
  const takes = member(tool, 'type') === 'custom' ? 'text' : 'json'
  return {
    name: textMember(definition, 'name') ?? '',
    schema: member(definition, 'parameters') ?? { type: 'object' },
    takes,
  }
}

function toolPassage(tool: unknown): Passage {
  const definition = definitionOf(tool)
  const schema = writeJson(member(definition, 'parameters') ?? member(definition, 'format') ?? {})
  const text = `${textMember(definition, 'name') ?? ''} ${textMember(definition, 'description') ?? ''} ${schema}`
  return passage({ from: 'tool', turn: -1, text, mark: markOf(tool), opens: true })
}

function chosenTools(tools: readonly OfferedTool[], choice: unknown): readonly OfferedTool[] {
  const type = textMember(choice, 'type')
  if (type === undefined) return tools
  const wanted = type === 'allowed_tools' ? listMember(member(choice, type), 'tools') : [choice]
  const names = wanted.map((tool) => textMember(definitionOf(tool), 'name'))
  return tools.filter((tool) => names.includes(tool.name))
}

/** OpenAI's own breakpoints, and the extension other hosts of this format take. */
function markOf(part: unknown): CacheMark | undefined {
  const breakpoint = member(part, 'prompt_cache_breakpoint') ?? undefined
  if (breakpoint !== undefined) return member(breakpoint, 'ttl') === undefined ? 'short' : 'long'
  const control = member(part, 'cache_control') ?? undefined
  if (control !== undefined) return member(control, 'ttl') === '1h' ? 'long' : 'short'
  return undefined
}

function readHistory(body: JsonObject) {
  const passages: Passage[] = []
  let lastUserText = ''
  let toolResults: string[] = []
  for (const [turn, message] of listMember(body, 'messages').entries()) {
    const role = textMember(message, 'role') ?? ''
    const from = fromRole(role)
    const parts = contentParts(message)
    const text = textOf(parts)
    if (from === 'user' && text !== '') lastUserText = text
    if (from === 'assistant') toolResults = []
    if (from === 'result') toolResults.push(text)
    const own = [...parts.map((part) => partFacts(part)), ...spokenFacts(message)]
    // A turn without content still costs its overhead.
    if (own.length === 0) own.push({ text: '' })
    passages.push(...own.map((facts, index) => passage({ from, turn, opens: index === 0, ...facts })))
  }
  return { passages, lastUserText, toolResults }
}

function fromRole(role: string): Passage['from'] {
  if (role === 'user' || role === 'assistant') return role
  return role === 'tool' || role === 'function' ? 'result' : 'system'
}

function contentParts(message: unknown): readonly unknown[] {
  const content = member(message, 'content')
  if (typeof content !== 'string') return listMember(message, 'content')
  return [{ type: 'text', text: content, cache_control: member(message, 'cache_control') }]
}

function textOf(parts: readonly unknown[]): string {
  return parts.flatMap((part) => textMember(part, 'text') ?? []).join('\n')
}

interface PartFacts {
  readonly text: string
  readonly tokens?: number
  readonly mark?: CacheMark | undefined
}

function partFacts(part: unknown): PartFacts {
  const text = textMember(part, 'text') ?? textMember(part, 'refusal')
  if (text !== undefined) return { text, mark: markOf(part) }
  return { text: writeJson(part), tokens: mediaTokens, mark: markOf(part) }
}

/** What an assistant turn holds beside its content: reasoning, and calls as `name arguments`. */
function spokenFacts(message: unknown): PartFacts[] {
  const reasoning = textMember(message, 'reasoning_content')
  const calls = listMember(message, 'tool_calls').map((call) => {
    const named = definitionOf(call)
    const given = textMember(named, 'arguments') ?? textMember(named, 'input') ?? ''
    return { text: `${textMember(named, 'name') ?? ''} ${given}` }
  })
  return reasoning === undefined ? calls : [{ text: reasoning }, ...calls]
}
