// Which tools the model may or must call, and how many at once. Where the model cannot be forced, it is asked.

import { type Conversation, placeOf, type RawJson, type Tool } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { refuseAt, shownWord } from '../request/fields.ts'
import type { WarningList } from '../request/warnings.ts'
import type { ToolContext, WireTool } from './render-tools.ts'

export interface WireChoice {
  readonly type: 'auto' | 'any' | 'tool' | 'none'
  /** The caller's. */
  readonly name?: string
}

/** The tools that are offered: all, unless the caller allowed only some. */
export function offeredTools({ tools, toolChoice }: Conversation, warnings: WarningList): readonly Tool[] {
  if (toolChoice?.kind !== 'allowed') return tools
  const allowed = new Set(toolChoice.names)
  const offered = tools.filter(({ name }) => allowed.has(name))
  if (offered.length === 0) refuseAt('/tool_choice', '`tool_choice` allows none of the tools in `tools`.')
  // It changes the beginning of the prompt, and with it what is cached and what thinking is bound to.
  if (offered.length < tools.length) warnings.add('tools_filtered', '/tool_choice')
  return offered
}

/** undefined = say nothing; the model is free to call what is offered. */
export function chooseTool(conversation: Conversation, offered: readonly Tool[]): WireChoice | undefined {
  const { toolChoice } = conversation
  if (offered.length === 0) {
    if (toolChoice?.kind === 'required' || toolChoice?.kind === 'named') {
      refuseAt('/tool_choice', '`tool_choice` demands a tool call, but there are no `tools`.')
    }
    return undefined
  }
  switch (toolChoice?.kind) {
    case undefined:
      return undefined
    case 'auto':
    case 'none':
      return { type: toolChoice.kind }
    case 'required':
      return { type: 'any' }
    case 'named':
      if (offered.some(({ name }) => name === toolChoice.name)) return { type: 'tool', name: toolChoice.name }
      return refuseAt(
        '/tool_choice',
        `\`tool_choice\` names ${shownWord(toolChoice.name)}, which is not among the tools.`,
      )
    case 'allowed': {
      if (!toolChoice.force) return { type: 'auto' }
      const [only] = offered
      return offered.length === 1 && only ? { type: 'tool', name: only.name } : { type: 'any' }
    }
  }
}

function isForced(choice: WireChoice | undefined): boolean {
  return choice?.type === 'any' || choice?.type === 'tool'
}

/** `thinking`: the request asks for the kind of reasoning that excludes forcing. */
export function relaxChoice(
  choice: WireChoice | undefined,
  { rules, thinking }: { rules: TargetRules; thinking: boolean },
  warnings: WarningList,
): WireChoice | undefined {
  if (!isForced(choice) || (rules.forcedToolChoice !== false && !thinking)) return choice
  warnings.add('tool_choice_relaxed', '/tool_choice')
  return { type: 'auto' }
}

/** Any of them will do, as long as it is one of the caller's. */
export function demandsOneOfSeveral(wanted: WireChoice | undefined, offered: readonly Tool[]): boolean {
  return wanted?.type === 'any' && offered.length > 1
}

/** The answer is to be a call of the tool named `json`; tools of the caller's own may still be called before. */
export function jsonToolChoice(
  wanted: WireChoice | undefined,
  json: string,
  { offered, warnings }: { offered: readonly Tool[]; warnings: WarningList },
): WireChoice {
  const [only] = offered
  if (wanted?.type === 'any' && offered.length === 1 && only) return { type: 'tool', name: only.name }
  // The model may answer at once, since the tool for that is among those it must choose from.
  if (demandsOneOfSeveral(wanted, offered)) warnings.add('tool_choice_relaxed', '/tool_choice')
  if (wanted && isForced(wanted)) return wanted
  return offered.length > 0 && wanted?.type !== 'none' ? { type: 'any' } : { type: 'tool', name: json }
}

/** `single` = the provider cannot be told to make one call at most, so the others are kept from the caller. */
export function writeChoice(
  choice: WireChoice | undefined,
  { conversation, tools, context }: { conversation: Conversation; tools: readonly WireTool[]; context: ToolContext },
): { json: RawJson | undefined; single: boolean } {
  const { rules, names, warnings } = context
  const one = conversation.parallelTools === false && tools.length > 0 && choice?.type !== 'none'
  const single = one && rules.parallelFlag === false
  // Where the form of the answer has room for one call only, nothing is lost by it.
  if (single && !conversation.oneCallByForm) {
    warnings.add('parallel_tool_calls_emulated', placeOf(conversation, 'parallelTools'))
  }
  const flagged = one && !single
  if (!choice && !flagged) return { json: undefined, single }
  const json = jsonObject([
    ['type', jsonString(choice?.type ?? 'auto')],
    ['name', choice?.name === undefined ? undefined : jsonString(names.sent(choice.name))],
    ['disable_parallel_tool_use', flagged ? 'true' : undefined],
  ])
  return { json, single }
}
