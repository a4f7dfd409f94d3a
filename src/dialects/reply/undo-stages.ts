// Reads a reply with what the rendering of its request changed: the stages that a ReplyUndo calls for, in an order in
// which each sees what it knows. Most requests change nothing, and their replies pass untouched.

import type { ReplyEvent } from '../canonical/reply-event.ts'
import type { ReplyUndo } from '../canonical/translation.ts'
import { MatchStop } from './match-stop.ts'
import { type ReplyStage, throughStages } from './reply-stage.ts'
import { RestoreArgumentNames } from './restore-argument-names.ts'
import { RestoreToolNames } from './restore-tool-names.ts'
import { SingleToolCall } from './single-tool-call.ts'
import { UnwrapCustomCalls } from './unwrap-custom-calls.ts'
import { UnwrapJsonTool } from './unwrap-json-tool.ts'

export class UndoStages implements ReplyStage {
  readonly #stages: ReplyStage[] = []
  readonly #stop: MatchStop | undefined

  constructor(undo: ReplyUndo) {
    // Arguments and the hidden tool have upstream names, custom tools have the caller's; stop sequences are for the text as the caller
    // gets it.
    if (undo.argumentNames?.size) this.#stages.push(new RestoreArgumentNames(undo.argumentNames))
    if (undo.jsonTool !== undefined) this.#stages.push(new UnwrapJsonTool(undo.jsonTool))
    if (undo.toolNames.size > 0) this.#stages.push(new RestoreToolNames(undo.toolNames))
    if (undo.customTools.size > 0) this.#stages.push(new UnwrapCustomCalls(undo.customTools))
    if (undo.singleToolCall) this.#stages.push(new SingleToolCall())
    if (undo.stop.length > 0) {
      this.#stop = new MatchStop(undo.stop)
      this.#stages.push(this.#stop)
    }
  }

  push(event: ReplyEvent): readonly ReplyEvent[] {
    return throughStages(this.#stages, event)
  }

  /** The reply has ended before its provider did: the upstream call is to be cancelled. */
  get isCut(): boolean {
    return this.#stop?.matched !== undefined
  }
}
