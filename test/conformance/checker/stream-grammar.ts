// Shared by the stream grammars of both dialects: iterating over the records and collecting violations.

import type { SseEvent } from '../../../src/wire/sse.ts'
import { Findings, type Level, type Violation } from './violation.ts'

export abstract class StreamGrammar {
  protected readonly findings: Findings

  constructor(level: Level) {
    this.findings = new Findings(level)
  }

  check(events: readonly SseEvent[]): Violation[] {
    for (const [at, event] of events.entries()) {
      this.findings.at = at
      this.record(event)
    }
    this.findings.at = undefined
    this.end()
    return this.findings.list
  }

  protected abstract record(event: SseEvent): void

  /** The records that must have come by the end. */
  protected abstract end(): void

  protected expect(isHeld: boolean, rule: string, what: string): void {
    this.findings.expect(isHeld, rule, what)
  }

  protected expectOfUs(isHeld: boolean, rule: string, what: string): void {
    this.findings.expectOfUs(isHeld, rule, what)
  }
}
