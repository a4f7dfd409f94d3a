// What clients of generateContent need of a reply and of a stream (https://ai.google.dev/api/generate-content, 2026-11).
// A stream has unnamed records, each a whole reply in form, and ends with a finish reason or an error.

import type { SseEvent } from '../../../src/wire/sse.ts'
import {
  Findings,
  isCount,
  isWellFormed,
  type Level,
  listOf,
  type Members,
  membersOf,
  parseJson,
  type Violation,
} from './violation.ts'

const kinds = ['text', 'functionCall', 'inlineData', 'executableCode', 'codeExecutionResult']

export function checkGeminiReply(reply: unknown, level: Level = 'own'): Violation[] {
  const findings = new Findings(level)
  checkRecord(findings, membersOf(reply), true)
  return findings.list
}

export function checkGeminiStream(events: readonly SseEvent[], level: Level = 'own'): Violation[] {
  const findings = new Findings(level)
  for (const [at, { event, data }] of events.entries()) {
    findings.at = at
    const isLast = at === events.length - 1
    findings.expect(event === '' || event === 'message', 'event-name', `an event called ${event}`)
    const record = parseJson(data)
    findings.expect(typeof record === 'object' && record !== null, 'json', 'no JSON object')
    const { error } = membersOf(record)
    if (error === undefined) checkRecord(findings, membersOf(record), isLast)
    else {
      findings.expect(isLast, 'after-end', 'records behind an error')
      const { code, message, status } = membersOf(error)
      const isWhole = isCount(code) && typeof message === 'string' && typeof status === 'string'
      findings.expect(isWhole, 'error-keys', 'an error without code, message or status')
    }
  }
  findings.expect(events.length > 0, 'terminal', 'no record')
  return findings.list
}

function checkRecord(findings: Findings, record: Members, isLast: boolean): void {
  const candidates = listOf(record.candidates).map(membersOf)
  const isBlocked = membersOf(record.promptFeedback).blockReason !== undefined
  findings.expect(candidates.length === 1 || isBlocked, 'candidates', `${candidates.length} candidates`)
  for (const { content, finishReason } of candidates) {
    findings.expect(isLast === (typeof finishReason === 'string'), 'terminal', `finish reason ${finishReason}`)
    findings.expectOfUs(membersOf(content).role === 'model', 'role', 'a content that is not of the model')
    for (const part of listOf(membersOf(content).parts).map(membersOf)) {
      const found = kinds.filter((kind) => part[kind] !== undefined)
      findings.expect(found.length === 1, 'part', `a part with ${found}`)
      findings.expect(isWellFormed(part.text ?? ''), 'unicode', 'half a character')
      if (part.functionCall === undefined) continue
      const { name, args = {} } = membersOf(part.functionCall)
      findings.expect(typeof name === 'string' && name !== '', 'call-name', 'a call without a name')
      findings.expect(typeof args === 'object' && args !== null && !Array.isArray(args), 'tool-json', 'no object')
    }
  }
  findings.expectOfUs(typeof record.modelVersion === 'string', 'model', 'no model')
  if (isLast) checkUsage(findings, membersOf(record.usageMetadata))
}

function checkUsage(findings: Findings, usage: Members): void {
  const { promptTokenCount, candidatesTokenCount = 0, thoughtsTokenCount = 0, totalTokenCount } = usage
  findings.expectOfUs(typeof usage.cost === 'number', 'cost', 'no cost')
  if (!isCount(promptTokenCount) || !isCount(candidatesTokenCount) || !isCount(thoughtsTokenCount)) {
    return findings.expectOfUs(false, 'usage', JSON.stringify(usage))
  }
  const sum = promptTokenCount + candidatesTokenCount + thoughtsTokenCount
  findings.expectOfUs(totalTokenCount === sum, 'usage-total', `${totalTokenCount} instead of ${sum}`)
}
