// A reason not to start that an operator can do something about. The message is for a person and complete: what is
// wrong, what was tried, what to do; the entry point prints it without a stack and exits. Never used while serving.

export class StartRefusal extends Error {
  override readonly name: string = 'StartRefusal'
}

/** What a thrown value says, for the middle of a sentence. */
export function causeText(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
