// How a command ends that did not do what was asked: a sentence, what to try, and the exit code scripts go by.

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  unauthorized: 3,
  notFound: 4,
  /** A limit was reached, or the balance does not suffice. */
  limit: 5,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** Returned, not thrown: every command can expect one from whatever it asks. */
export class Refusal {
  constructor(
    readonly exit: ExitCode,
    readonly message: string,
    /** A command or a setting, as one would type it. */
    readonly attempt?: string,
  ) {}
}

export function usageRefusal(message: string, attempt?: string): Refusal {
  return new Refusal(exitCodes.usage, message, attempt)
}

/** An answer, or its refusal: where what was named is not there, the command that lists what is. */
export function orListedBy<Answer>(answer: Answer | Refusal, attempt: string): Answer | Refusal {
  const isMissing = answer instanceof Refusal && answer.exit === exitCodes.notFound
  return isMissing ? new Refusal(answer.exit, answer.message, attempt) : answer
}

/** Every refusal says what to try; where it has nothing better, how the command is used. */
export function refusalText({ message, attempt }: Refusal, otherwise: string): string {
  return `tollgate: ${message}\nTry: ${attempt ?? otherwise}\n`
}
