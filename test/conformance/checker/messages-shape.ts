// The objects that Messages replies and streams are made of: which members they have and what may stand in them.

import { type Findings, isCount, isMembers, type Members, membersOf } from './violation.ts'

const stopReasons = [
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'refusal',
  'model_context_window_exceeded',
]
const messageNames = ['id', 'type', 'role', 'model', 'content', 'stop_reason', 'stop_sequence', 'usage']
export const usageNames = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'output_tokens']
const wholeUsageNames = [
  'cache_creation',
  'output_tokens_details',
  'server_tool_use',
  'service_tier',
  'inference_geo',
  'speed',
]
/** The members of each kind of block, and the deltas that may fill it. */
export const blockShapes: Readonly<Record<string, { texts: readonly string[]; deltas: readonly string[] }>> = {
  text: { texts: ['text'], deltas: ['text_delta'] },
  thinking: { texts: ['thinking', 'signature'], deltas: ['thinking_delta', 'signature_delta'] },
  redacted_thinking: { texts: ['data'], deltas: [] },
  tool_use: { texts: ['id', 'name'], deltas: ['input_json_delta'] },
}
export function checkMessage(findings: Findings, message: Members): void {
  for (const name of messageNames) findings.expect(name in message, 'message-keys', `${name} is there`)
  for (const name of ['stop_details', 'container', 'diagnostics']) {
    findings.expectOfUs(name in message, 'message-keys', `${name} is there`)
  }
  findings.expect(
    message.type === 'message' && message.role === 'assistant',
    'message-keys',
    'a message of the assistant',
  )
  findings.expect(typeof message.id === 'string' && message.id !== '', 'id', 'an id')
  findings.expectOfUs(String(message.id).startsWith('msg_'), 'id', 'an id of msg_…')
  findings.expect(typeof message.model === 'string' && message.model !== '', 'model', 'a model')
  checkUsage(findings, message.usage, [...usageNames, ...wholeUsageNames])
}

export function checkBlock(findings: Findings, block: Members): void {
  const shape = blockShapes[String(block.type)]
  // Claude's own tools have their own block types; a reply of ours has none.
  if (!shape) return findings.expectOfUs(false, 'known-block', `unknown block ${block.type}`)
  for (const name of shape.texts) findings.expect(typeof block[name] === 'string', 'block-keys', `${name} is a string`)
  findings.expectOfUs(block.type !== 'text' || 'citations' in block, 'block-keys', 'citations is there')
  if (block.type !== 'tool_use') return
  findings.expect(block.id !== '' && block.name !== '', 'block-keys', 'a call has an id and a name')
  findings.expectOfUs(membersOf(block.caller).type === 'direct', 'caller', 'a call has its caller')
}

export function checkStop(findings: Findings, stop: Members, hasCalls: boolean): void {
  const { stop_reason: reason, stop_sequence: sequence, stop_details: details } = stop
  findings.expect(stopReasons.includes(String(reason)), 'stop-reason', `stop_reason ${reason}`)
  findings.expect(reason !== 'tool_use' || hasCalls, 'stop-tools', 'tool_use without a call')
  findings.expect(reason !== 'end_turn' || !hasCalls, 'stop-tools', 'end_turn with calls to answer')
  findings.expect(
    (reason === 'stop_sequence') === (typeof sequence === 'string'),
    'stop-sequence',
    `${reason}: ${sequence}`,
  )
  findings.expectOfUs(
    (reason === 'refusal') === isMembers(details),
    'stop-details',
    'details of a refusal, and only then',
  )
}

export function checkUsage(findings: Findings, value: unknown, names: readonly string[]): void {
  const usage = membersOf(value)
  for (const name of names) findings.expectOfUs(name in usage, 'usage-keys', `usage.${name} is there`)
  for (const name of usageNames) {
    const isCached = name.startsWith('cache')
    const isOptional = isCached || (name === 'input_tokens' && !names.includes(name))
    const isKnown = isCount(usage[name]) || (usage[name] === null && isCached)
    const isOpen = isOptional && (usage[name] === undefined || usage[name] === null)
    findings.expect(isKnown || isOpen, 'usage-keys', `usage.${name} is a count`)
  }
  const { cost } = usage
  findings.expectOfUs(cost === undefined || (typeof cost === 'number' && cost >= 0), 'usage-cost', 'cost is a number')
}
