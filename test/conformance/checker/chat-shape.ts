// The objects that Chat Completions replies and chunks are made of: which members they have and what may stand in them.

import { type Findings, isCount, type Members, membersOf, parseJson } from './violation.ts'

const finishReasons = ['stop', 'length', 'tool_calls', 'content_filter']
/** Finish reason of the predecessor of tools, which some hosts still send. */
const legacyFinish = 'function_call'

export function checkHead(findings: Findings, head: Members, object: string): void {
  findings.expect(head.object === object, 'object', `object is ${object}`)
  findings.expect(typeof head.id === 'string' && head.id !== '', 'id', 'an id')
  findings.expectOfUs(String(head.id).startsWith('chatcmpl-'), 'id', 'an id of chatcmpl-…')
  findings.expect(isCount(head.created) && head.created > 0, 'created', 'created is in seconds')
  findings.expect(typeof head.model === 'string' && head.model !== '', 'model', 'a model')
}

export function checkCall(findings: Findings, call: Members, isCut: boolean): void {
  const called = membersOf(call.function ?? call.custom)
  const isNamed = [call.id, called.name].every((value) => typeof value === 'string' && value !== '')
  findings.expect(isNamed, 'tool-first', 'id and name')
  const text = call.type === 'custom' ? called.input : called.arguments
  findings.expect(typeof text === 'string', 'tool-arguments', 'arguments are text')
  const isJson = call.type === 'custom' || isCut || parseJson(String(text)) !== undefined
  findings.expect(isJson, 'tool-json', `arguments are no JSON: ${text}`)
}

export function checkFinish(findings: Findings, { finish_reason: finish }: Members, hasCalls: boolean): void {
  const isKnown = finishReasons.includes(String(finish))
  findings.expect(isKnown || finish === legacyFinish, 'finish', `finish_reason ${finish}`)
  findings.expectOfUs(isKnown, 'finish', `finish_reason ${finish}`)
  findings.expect(finish !== 'tool_calls' || hasCalls, 'finish-tools', 'tool_calls without a call')
  // OpenAI itself says stop when the caller named the tool to call.
  findings.expectOfUs(finish !== 'stop' || !hasCalls, 'finish-tools', 'stop with calls to answer')
}

export function checkUsage(findings: Findings, value: unknown): void {
  const usage = membersOf(value)
  const { prompt_tokens: prompt, completion_tokens: output, total_tokens: total, cost } = usage
  const details = membersOf(usage.prompt_tokens_details)
  findings.expect(isCount(prompt) && isCount(output) && isCount(total), 'usage-keys', 'three counts')
  findings.expect(Number(prompt) + Number(output) === total, 'usage-sum', `${prompt} + ${output} is not ${total}`)
  const cached = Number(details.cached_tokens ?? 0) + Number(details.cache_write_tokens ?? 0)
  findings.expect(cached <= Number(prompt), 'usage-sum', 'more cached than there is')
  findings.expectOfUs(cost === undefined || (typeof cost === 'number' && cost >= 0), 'usage-cost', 'cost is a number')
}
