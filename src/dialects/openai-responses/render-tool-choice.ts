// Which of the tools must be called, as the target can be told.

import type { Conversation, RawJson, Tool, ToolChoice } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { refuseAt, shownWord } from '../request/fields.ts'
import { type Rendering, takesCustom } from './rendering.ts'

/** What is left of the caller's tools and choice once the target's ways are considered. */
export interface Offer {
  readonly tools: readonly Tool[]
  readonly choice: ToolChoice | undefined
}

/** A choice among some of the tools, for hosts without a word for it: the others are left out. */
export function offerOf({ tools, toolChoice }: Conversation, { rules, warnings }: Rendering): Offer {
  if (toolChoice?.kind === 'named' && tools.length > 0 && !tools.some(({ name }) => name === toolChoice.name)) {
    return refuseAt(
      '/tool_choice',
      `\`tool_choice\` names ${shownWord(toolChoice.name)}, which is not among the tools.`,
    )
  }
  if (toolChoice?.kind !== 'allowed') return { tools, choice: toolChoice }
  const allowed = tools.filter(({ name }) => toolChoice.names.includes(name))
  if (allowed.length === 0) return refuseAt('/tool_choice', '`tool_choice` allows no tool that is offered.')
  if (rules.allowedTools !== false) return { tools, choice: toolChoice }
  if (allowed.length < tools.length) warnings.add('tools_filtered', '/tool_choice')
  if (!toolChoice.force) return { tools: allowed, choice: { kind: 'auto' } }
  const [only, ...more] = allowed
  const isOne = only !== undefined && more.length === 0
  return { tools: allowed, choice: isOne ? { kind: 'named', name: only.name } : { kind: 'required' } }
}

export function renderChoice({ tools, choice }: Offer, rendering: Rendering): RawJson | undefined {
  if (choice === undefined) return undefined
  if (choice.kind === 'auto' || choice.kind === 'none') return jsonString(choice.kind)
  const isForced = choice.kind !== 'allowed' || choice.force
  const isRelaxed = isForced && rendering.rules.forcedToolChoice === false
  if (isRelaxed) rendering.warnings.add('tool_choice_relaxed', '/tool_choice')
  if (choice.kind === 'allowed') {
    const offered = choice.names.filter((allowed) => tools.some(({ name }) => name === allowed))
    return jsonObject([
      ['type', '"allowed_tools"'],
      ['mode', choice.force && !isRelaxed ? '"required"' : '"auto"'],
      ['tools', jsonArray(offered.map((name) => named(name, tools, rendering)))],
    ])
  }
  if (isRelaxed) return '"auto"'
  return choice.kind === 'named' ? named(choice.name, tools, rendering) : '"required"'
}

function named(name: string, tools: readonly Tool[], { rules, names }: Rendering): RawJson {
  const isCustom = takesCustom(rules) && tools.some((tool) => tool.name === name && tool.kind === 'custom')
  return jsonObject([
    ['type', isCustom ? '"custom"' : '"function"'],
    ['name', jsonString(names.sent(name))],
  ])
}
