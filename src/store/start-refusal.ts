// A reason not to start that the operator can fix. The message is complete: what is wrong, what was tried, what to do. The
// entry point prints it without a stack trace and exits. Never used while serving.

export class StartRefusal extends Error {
  override readonly name: string = 'StartRefusal'
}

/** The message of a thrown value, for the middle of a sentence. */
export function causeText(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
