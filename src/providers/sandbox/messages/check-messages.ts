// The rules of a Messages history: known roles, no empty text, and every tool use answered first thing in the next user
// turn. Neighbouring turns of one role count as one, as they do at Anthropic.

import { isObject, type JsonObject, listMember, member, textMember } from '../json-value.ts'
import { invalid, type Refusal } from '../refusal.ts'

const roles = ['user', 'assistant', 'system']
/** Blocks that are looked into no further. */
const otherTypes: ReadonlySet<string> = new Set([
  ...['image', 'document', 'search_result', 'thinking', 'redacted_thinking', 'container_upload'],
  ...['server_tool_use', 'web_search_tool_result', 'web_fetch_tool_result', 'code_execution_tool_result'],
  ...['bash_code_execution_tool_result', 'text_editor_code_execution_tool_result', 'tool_search_tool_result'],
  ...['mcp_tool_use', 'mcp_tool_result', 'mcp_tool_listing', 'compaction', 'fallback', 'advisor_tool_result'],
  ...['tool_addition', 'tool_removal'],
])
const idPattern = /^[a-zA-Z0-9_-]+$/

export function checkMessages(body: JsonObject): Refusal | undefined {
  const messages = member(body, 'messages')
  if (messages === undefined) return invalid('messages: Field required')
  if (!Array.isArray(messages)) return invalid('messages: Input should be a valid list')
  if (messages.length === 0) return invalid('messages: at least one message is required')
  for (const [index, message] of messages.entries()) {
    const refusal = checkMessage(message, index, index === messages.length - 1)
    if (refusal) return refusal
  }
  if (member(messages[0], 'role') !== 'user') return invalid('messages: first message must use the "user" role')
  return checkPairs(messages)
}

function checkMessage(message: unknown, index: number, isLast: boolean): Refusal | undefined {
  const at = `messages.${index}`
  if (!isObject(message)) return invalid(`${at}: Input should be a valid dictionary`)
  const role = member(message, 'role')
  if (role === undefined) return invalid(`${at}.role: Field required`)
  if (typeof role !== 'string' || !roles.includes(role)) {
    return invalid(`${at}.role: Input should be 'user', 'assistant' or 'system'`)
  }
  const content = member(message, 'content')
  if (content === undefined) return invalid(`${at}.content: Field required`)
  if (typeof content !== 'string' && !Array.isArray(content)) {
    return invalid(`${at}.content: Input should be a valid string or a list of content blocks`)
  }
  if (content.length === 0) {
    if (isLast && role === 'assistant') return undefined
    return invalid(`${at}: all messages must have non-empty content except for the optional final assistant message`)
  }
  if (typeof content === 'string') return content.trim() === '' ? blankText : undefined
  return checkBlocks(content, at)
}

const emptyText = invalid('messages: text content blocks must be non-empty')
const blankText = invalid('messages: text content blocks must contain non-whitespace text')

function checkBlocks(blocks: readonly unknown[], at: string): Refusal | undefined {
  for (const [index, block] of blocks.entries()) {
    const refusal = checkBlock(block, `${at}.content.${index}`)
    if (refusal) return refusal
  }
  const isBlank = blocks.every(
    (block) => textMember(block, 'type') === 'text' && textMember(block, 'text')?.trim() === '',
  )
  return isBlank ? blankText : undefined
}

function checkBlock(block: unknown, at: string): Refusal | undefined {
  const type = textMember(block, 'type')
  switch (type) {
    case undefined:
      return invalid(`${at}.type: Field required`)
    case 'text': {
      const text = textMember(block, 'text')
      if (text === undefined) return invalid(`${at}.text.text: Field required`)
      return text === '' ? emptyText : undefined
    }
    case 'tool_use': {
      if (!idPattern.test(textMember(block, 'id') ?? '')) {
        return invalid(`${at}.tool_use.id: String should match pattern '${idPattern.source}'`)
      }
      if (textMember(block, 'name') === undefined) return invalid(`${at}.tool_use.name: Field required`)
      if (isObject(member(block, 'input'))) return undefined
      return invalid(`${at}.tool_use.input: Input should be a valid dictionary`)
    }
    case 'tool_result':
      if (textMember(block, 'tool_use_id') !== undefined) return undefined
      return invalid(`${at}.tool_result.tool_use_id: Field required`)
    default:
      if (otherTypes.has(type)) return undefined
      return invalid(
        `${at}: Input tag '${type.slice(0, 64)}' found using 'type' does not match any of the expected tags`,
      )
  }
}

function checkPairs(messages: readonly unknown[]): Refusal | undefined {
  const everyId = new Set<string>()
  let known = new Set<string>()
  const unanswered = new Set<string>()
  let askedAt = 0
  let before: unknown
  for (const [index, message] of messages.entries()) {
    const role = member(message, 'role')
    const blocks = listMember(message, 'content')
    if (role === 'assistant') {
      if (before !== 'assistant') {
        if (unanswered.size > 0) break
        known = new Set()
      }
      for (const block of blocks) {
        if (textMember(block, 'type') !== 'tool_use') continue
        const id = textMember(block, 'id') ?? ''
        if (everyId.has(id)) return invalid('messages: `tool_use` ids must be unique')
        for (const ids of [everyId, known, unanswered]) ids.add(id)
        askedAt = index
      }
    } else {
      const refusal = checkResults(blocks, index, known)
      if (refusal) return refusal
      // Results stand first: what comes after another block does not answer anything.
      const end = blocks.findIndex((block) => textMember(block, 'type') !== 'tool_result')
      for (const block of end < 0 ? blocks : blocks.slice(0, end)) {
        unanswered.delete(textMember(block, 'tool_use_id') ?? '')
      }
    }
    before = role
  }
  if (unanswered.size === 0) return undefined
  return invalid(
    `messages.${askedAt}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${[...unanswered].join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  )
}

function checkResults(blocks: readonly unknown[], turn: number, known: ReadonlySet<string>): Refusal | undefined {
  for (const [index, block] of blocks.entries()) {
    if (textMember(block, 'type') !== 'tool_result') continue
    const id = textMember(block, 'tool_use_id') ?? ''
    if (known.has(id)) continue
    return invalid(
      `messages.${turn}.content.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
    )
  }
  return undefined
}
