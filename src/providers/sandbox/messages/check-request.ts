// Refuses what Anthropic refuses, in its words: the message begins with the path of the field. Fields it does not know
// are let pass.

import { isObject, type JsonObject, listMember, member, textMember } from '../json-value.ts'
import { invalid, type Refusal } from '../refusal.ts'
import { checkMessages } from './check-messages.ts'

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/
const choiceTypes = ['auto', 'any', 'tool', 'none']
const thinkingTypes = ['adaptive', 'enabled', 'disabled', 'between_tools']
const budgetTokensMin = 1_024
const cacheMarksMax = 4

export function checkRequest(body: JsonObject): Refusal | undefined {
  return checkModel(body) ?? checkOutput(body) ?? checkInput(body)
}

/** Counting takes the same body without what concerns the output. */
export function checkCountRequest(body: JsonObject): Refusal | undefined {
  return checkModel(body) ?? checkInput(body)
}

function checkModel(body: JsonObject): Refusal | undefined {
  const model = member(body, 'model')
  if (model === undefined) return invalid('model: Field required')
  return typeof model === 'string' ? undefined : invalid('model: Input should be a valid string')
}

function checkOutput(body: JsonObject): Refusal | undefined {
  const cap = member(body, 'max_tokens')
  if (cap === undefined) return invalid('max_tokens: Field required')
  if (typeof cap !== 'number' || !Number.isInteger(cap)) return invalid('max_tokens: Input should be a valid integer')
  if (cap < 0) return invalid('max_tokens: Input should be greater than or equal to 0')
  if (typeof (member(body, 'stream') ?? false) !== 'boolean') return invalid('stream: Input should be a valid boolean')
  const stops = member(body, 'stop_sequences') ?? []
  if (!Array.isArray(stops)) return invalid('stop_sequences: Input should be a valid list')
  for (const [index, stop] of stops.entries()) {
    if (typeof stop !== 'string') return invalid(`stop_sequences.${index}: Input should be a valid string`)
    if (stop.trim() === '') return invalid('stop_sequences: each stop sequence must contain non-whitespace')
  }
  return checkThinking(member(body, 'thinking') ?? undefined, cap)
}

function checkThinking(thinking: unknown, cap: number): Refusal | undefined {
  if (thinking === undefined) return undefined
  const type = textMember(thinking, 'type')
  if (type === undefined || !thinkingTypes.includes(type)) {
    return invalid(`thinking.type: Input should be one of ${quoted(thinkingTypes)}`)
  }
  if (type !== 'enabled') return undefined
  const budget = member(thinking, 'budget_tokens')
  if (budget === undefined) return invalid('thinking.enabled.budget_tokens: Field required')
  if (typeof budget !== 'number' || !Number.isInteger(budget)) {
    return invalid('thinking.enabled.budget_tokens: Input should be a valid integer')
  }
  if (budget < budgetTokensMin) {
    return invalid(`thinking.enabled.budget_tokens: Input should be greater than or equal to ${budgetTokensMin}`)
  }
  return budget < cap ? undefined : invalid('`max_tokens` must be greater than `thinking.budget_tokens`.')
}

function checkInput(body: JsonObject): Refusal | undefined {
  return checkSystem(body) ?? checkMessages(body) ?? checkTools(body) ?? checkToolChoice(body) ?? checkMarks(body)
}

function checkSystem(body: JsonObject): Refusal | undefined {
  const system = member(body, 'system') ?? ''
  if (typeof system === 'string') return undefined
  if (!Array.isArray(system)) return invalid('system: Input should be a valid string or a list of text blocks')
  for (const [index, block] of system.entries()) {
    const text = textMember(block, 'text')
    if (text === undefined) return invalid(`system.${index}.text: Field required`)
    if (text === '') return invalid('system: text content blocks must be non-empty')
  }
  return undefined
}

function checkTools(body: JsonObject): Refusal | undefined {
  const tools = member(body, 'tools') ?? []
  if (!Array.isArray(tools)) return invalid('tools: Input should be a valid list')
  for (const [index, tool] of tools.entries()) {
    if (!isObject(tool)) return invalid(`tools.${index}: Input should be a valid dictionary`)
    // A dated type brings its own schema, and sometimes its own name.
    if ((member(tool, 'type') ?? 'custom') !== 'custom') continue
    const name = member(tool, 'name')
    if (name === undefined) return invalid(`tools.${index}.custom.name: Field required`)
    if (typeof name !== 'string' || !namePattern.test(name)) {
      return invalid(`tools.${index}.custom.name: String should match pattern '${namePattern.source}'`)
    }
    const schema = member(tool, 'input_schema')
    if (schema === undefined) return invalid(`tools.${index}.custom.input_schema: Field required`)
    if (member(schema, 'type') !== 'object') {
      return invalid(`tools.${index}.custom.input_schema.type: Input should be 'object'`)
    }
  }
  return undefined
}

function checkToolChoice(body: JsonObject): Refusal | undefined {
  const choice = member(body, 'tool_choice') ?? undefined
  if (choice === undefined) return undefined
  const type = textMember(choice, 'type')
  if (type === undefined || !choiceTypes.includes(type)) {
    return invalid(`tool_choice.type: Input should be one of ${quoted(choiceTypes)}`)
  }
  const tools = listMember(body, 'tools')
  if (type !== 'none' && tools.length === 0) {
    return invalid('tool_choice: tool_choice may only be specified while providing tools')
  }
  if (type !== 'tool') return undefined
  const name = textMember(choice, 'name')
  if (name === undefined) return invalid('tool_choice.tool.name: Field required')
  if (tools.some((tool) => textMember(tool, 'name') === name)) return undefined
  return invalid(`tool_choice.tool.name: Tool '${name}' not found in provided tools`)
}

function checkMarks(body: JsonObject): Refusal | undefined {
  const messages = listMember(body, 'messages').flatMap((message) => listMember(message, 'content'))
  const places = [body, ...listMember(body, 'tools'), ...listMember(body, 'system'), ...messages]
  const found = places.filter((place) => (member(place, 'cache_control') ?? undefined) !== undefined).length
  if (found <= cacheMarksMax) return undefined
  return invalid(`A maximum of ${cacheMarksMax} blocks with cache_control may be provided. Found ${found}.`)
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(', ')
}
