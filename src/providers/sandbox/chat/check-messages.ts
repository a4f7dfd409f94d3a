// The rules of a chat history: known roles, content of the right kind, and every tool call answered right after it.

import { isObject, type JsonObject, listMember, member, textMember } from '../json-value.ts'
import { invalid, type Refusal } from '../refusal.ts'
import { missing, unknownValue, wrongType } from './field-refusals.ts'

const roles = ['system', 'assistant', 'user', 'function', 'tool', 'developer']
const partTypes = ['text', 'image_url', 'input_audio', 'file', 'refusal']
const callIdLengthMax = 40

export function checkMessages(body: JsonObject): Refusal | undefined {
  const messages = member(body, 'messages')
  if (messages === undefined) return missing('messages')
  if (!Array.isArray(messages)) return wrongType('messages', 'an array of objects', messages)
  if (messages.length === 0) {
    const message =
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return invalid(message, { param: 'messages', code: 'empty_array' })
  }
  for (const [index, message] of messages.entries()) {
    const refusal = checkMessage(message, `messages[${index}]`)
    if (refusal) return refusal
  }
  return checkPairs(messages)
}

function checkMessage(message: unknown, param: string): Refusal | undefined {
  if (!isObject(message)) return wrongType(param, 'an object', message)
  const role = member(message, 'role')
  if (typeof role !== 'string' || !roles.includes(role)) {
    return unknownValue(`${param}.role`, role, roles)
  }
  if (role === 'tool' && textMember(message, 'tool_call_id') === undefined) {
    const field = `${param}.tool_call_id`
    return invalid(`Missing parameter '${field}': messages with role 'tool' must have a 'tool_call_id'.`, {
      param: field,
    })
  }
  const calls = role === 'assistant' ? member(message, 'tool_calls') : undefined
  const mayBeEmpty = role === 'function' || (role === 'assistant' && hasAnswer(message))
  return checkContent(message, `${param}.content`, mayBeEmpty) ?? checkCalls(calls ?? [], `${param}.tool_calls`)
}

/** What an assistant turn may consist of instead of content. */
function hasAnswer(message: JsonObject): boolean {
  return ['tool_calls', 'function_call', 'refusal', 'audio'].some((key) => (member(message, key) ?? null) !== null)
}

function checkContent(message: JsonObject, param: string, mayBeEmpty: boolean): Refusal | undefined {
  const content = member(message, 'content') ?? null
  if (typeof content === 'string' || (content === null && mayBeEmpty)) return undefined
  if (!Array.isArray(content)) return wrongType(param, 'one of a string or array of objects', content)
  for (const [index, part] of content.entries()) {
    const type = textMember(part, 'type')
    if (type === undefined || !partTypes.includes(type)) {
      return unknownValue(`${param}[${index}].type`, member(part, 'type'), partTypes)
    }
    if (type === 'text' && textMember(part, 'text') === undefined) {
      return wrongType(`${param}[${index}].text`, 'a string', member(part, 'text') ?? null)
    }
  }
  return undefined
}

function checkCalls(calls: unknown, param: string): Refusal | undefined {
  if (!Array.isArray(calls)) return wrongType(param, 'an array of objects', calls)
  for (const [index, call] of calls.entries()) {
    const id = member(call, 'id')
    if (typeof id !== 'string') return wrongType(`${param}[${index}].id`, 'a string', id ?? null)
    if (id.length > callIdLengthMax) {
      const text = `Invalid '${param}[${index}].id': string too long. Expected a string with maximum length ${callIdLengthMax}, but got a string with length ${id.length} instead.`
      return invalid(text, { param: `${param}[${index}].id`, code: 'string_above_max_length' })
    }
    const named = member(call, member(call, 'type') === 'custom' ? 'custom' : 'function')
    if (textMember(named, 'name') === undefined) return wrongType(`${param}[${index}]`, 'a call with a name', call)
  }
  return undefined
}

function checkPairs(messages: readonly unknown[]): Refusal | undefined {
  let unanswered = new Set<string>()
  let known = new Set<string>()
  for (const [index, message] of messages.entries()) {
    const role = member(message, 'role')
    if (role === 'tool') {
      const id = textMember(message, 'tool_call_id') ?? ''
      if (!known.has(id)) return strayResult(index, id)
      unanswered.delete(id)
      continue
    }
    if (unanswered.size > 0) break
    const ids =
      role === 'assistant' ? listMember(message, 'tool_calls').map((call) => textMember(call, 'id') ?? '') : []
    unanswered = new Set(ids)
    known = new Set(ids)
  }
  if (unanswered.size === 0) return undefined
  const text = `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...unanswered].join(', ')}`
  return invalid(text, { param: 'messages' })
}

function strayResult(index: number, id: string): Refusal {
  const text = `Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'; no such call has the id '${id}'.`
  return invalid(text, { param: `messages[${index}].tool_call_id` })
}
