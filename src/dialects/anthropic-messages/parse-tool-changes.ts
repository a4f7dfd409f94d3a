// Tools added and withdrawn in mid-conversation. Other dialects know one list for the whole request, so the changes are
// collected here and made to that list.

import type { JsonNode } from '../../wire/json-node.ts'
import type { Tool } from '../canonical/conversation.ts'
import { type RequestFields, shownWord } from '../request/fields.ts'
import type { ParseContext } from './parse-context.ts'
import { parseTool } from './parse-tools.ts'

export type ToolChange =
  | { readonly kind: 'define'; readonly tool: Tool }
  | { readonly kind: 'offer' | 'withdraw'; readonly name: string }

/** undefined = it concerns something that is not offered through this gateway. */
export function parseToolChange(
  block: RequestFields,
  node: () => JsonNode | undefined,
  context: ParseContext,
): ToolChange | undefined {
  const type = block.text('type')
  if (type !== 'tool_addition' && type !== 'tool_removal') {
    return block.refuse('type', `A ${shownWord(type)} block in a system message is not available for this model.`)
  }
  context.warnings.add(`${type}_merged`, block.at)
  const subject = block.optionalObject('tool') ?? block.missing('tool')
  const subjectType = subject.text('type')
  if (subjectType === 'tool_reference') {
    return { kind: type === 'tool_addition' ? 'offer' : 'withdraw', name: subject.text('name') }
  }
  if (subjectType !== 'tool_definition') return undefined
  const definition = subject.optionalObject('definition') ?? subject.missing('definition')
  const tool = parseTool(definition, () => node()?.member('tool')?.member('definition'), context)
  return tool && { kind: 'define', tool }
}

/** The tools that are offered at the end of the conversation. */
export function applyToolChanges(tools: readonly Tool[], changes: readonly ToolChange[]): Tool[] {
  const known = new Map(tools.map((tool) => [tool.name, { tool, offered: true }]))
  for (const change of changes) {
    if (change.kind === 'define') {
      known.set(change.tool.name, { tool: change.tool, offered: true })
      continue
    }
    const entry = known.get(change.name)
    if (entry) entry.offered = change.kind === 'offer'
  }
  return [...known.values()].flatMap(({ tool, offered }) => (offered ? tool : []))
}
